"use strict";
/* Elements are made from texts alone: nothing in this page reads markup out of data. */

const element = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== ""));
  return made;
};

/* A stranger's words: their direction of writing ends with them. */
const words = (text) => element("bdi", null, text);
const strong = (text) => element("strong", null, words(text));
const muted = (...children) => element("span", { class: "muted" }, ...children);
const listed = (items) => element("ul", null, items.map((item) => element("li", null, item)));
const number = (value) => value.toLocaleString("en-US");

/* What a POSIX shell reads as one word, as Python's shlex writes it. */
const quoted = (text) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\"'\"'") + "'";

const copied = (text) => {
  const code = element("code", null, text);
  const said = element("span", { role: "status" });
  const button = element("button", { type: "button" }, "Copy");
  const select = () => {
    getSelection().selectAllChildren(code);
    said.textContent = "selected: copy it with your keyboard";
  };
  button.addEventListener("click", () => {
    const done = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    done.then(() => { said.textContent = "copied"; }, select);
  });
  return element("p", { class: "copy" }, code, button, said);
};
