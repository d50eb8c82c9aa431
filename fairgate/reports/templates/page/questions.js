/* How an answer to a question is listed and shown. */

const questions = (data) => {
  const text = (place) => data.texts[place];
  const item = (row) => data.items[row[1]];
  const tags = [
    ["stereotype", "stereotype"], ["counter", "against it"], ["unknown", "unknown"], ["undecided", "undecided"],
  ];
  const fact = (name, place) => place ? [element("dt", null, name), element("dd", null, words(text(place)))] : [];
  const share = (value) => value === null ? "" : (100 * value).toFixed(0) + " %";

  return {
    tags,
    facets: [
      ["category", "Category", (row) => row[4]],
      ["setting", "Setting", (row) => row[5]],
      ["context", "Context", (row) => row[6]],
      ["suite", "Suite", (row) => row[3]],
    ],
    orders: [
      ["", "order of the plan", null],
      ["margin", "widest answer margin", (row) => row[13] ?? -1],
      ["documents", "most stereotypical documents", (row) => row[12] ?? -1],
    ],
    key: (row) => text(row[2]),
    suite: (row) => text(row[3]),
    searched: (row) => [row[2], item(row)[0], row[4], row[5], row[11]],
    summary: (row) => [
      element("span", { class: "tag " + tags[row[0]][0] }, tags[row[0]][1]),
      element("span", null, words(text(row[4])), ", ", words(text(row[5]))),
      element("span", { class: "line" }, words(text(item(row)[0]) || text(row[2]))),
      element("span", { class: "turn" }, words(text(row[6]))),
    ],
    detail: (row) => [
      item(row)[0] ? element("p", { class: "text" }, words(text(item(row)[0]))) : "",
      item(row)[1].length ? listed(item(row)[1].map((place) => words(text(place)))) : "",
      element("dl", null,
        fact("answer", row[7]), fact("right", row[8]), fact("the model wrote", row[11]),
        fact("retriever", row[9]), fact("instruction", row[10]),
        row[12] === null ? [] : [element("dt", null, "stereotypical documents"), element("dd", null, share(row[12]))],
        row[13] === null ? [] : [element("dt", null, "margin of the answer"), element("dd", null, row[13].toFixed(2) + " nats")]),
      element("p", null, element("code", null, text(row[2]))),
    ].flat(),
  };
};
