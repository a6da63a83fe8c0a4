// What every page begins with: the connection to the server, and links to what this visitor may open.

import { client, connect, noticeOf } from "./api.js";
import { $ } from "./draw.js";

export const server = connect(noticeOf($("notice")));

const navigate = ({ visitor, overview }) => {
  for (const link of document.querySelectorAll("[data-for]"))
    link.hidden = !(link.dataset.for === "several" ? overview.of > 1 && visitor.may.includes("adjudicate") : visitor.may.includes(link.dataset.for));
};

/** The state that a page begins with; nothing if the visitor is refused. */
export const begin = async () => {
  history.replaceState(null, "", location.pathname); // the token has done its work
  const { data } = await server.get(`/api/state?client=${client}`);
  if (data) navigate(data);
  return data;
};
