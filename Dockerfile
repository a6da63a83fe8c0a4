# The labelling page: docker build -t badge . && docker run -p 8600:8600 -v "$PWD:/data" badge reviews.csv --classes good,bad
FROM python:3.11-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu '.[label,parquet]' \
    && useradd --create-home --uid 1000 label
USER label
WORKDIR /data
EXPOSE 8600
ENTRYPOINT ["badge", "label", "--host", "0.0.0.0"]
CMD ["--help"]
