// Prints what GitHub's own language service says of the workflows and actions named, as JSON.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { validate } from "@actions/languageservice/validate";
import { TextDocument } from "vscode-languageserver-textdocument";

async function said(path) {
  const address = pathToFileURL(resolve(path)).href; // its name tells an action from a workflow
  const document = TextDocument.create(address, "yaml", 1, readFileSync(path, "utf8"));
  const found = await validate(document);
  return found.map((one) => `${path}:${one.range.start.line + 1}: ${one.message}`);
}

Promise.all(process.argv.slice(2).map(said)).then((lists) => {
  console.log(JSON.stringify(lists.flat()));
});
