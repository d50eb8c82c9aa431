/* How a pair of a source and a follow-up is listed and shown. */

const pairs = (data) => {
  const text = (place) => data.texts[place];
  const source = (row) => data.sources[row[1]];
  const variant = (row) => data.variants[row[2]];
  const move = (row) => data.moves[row[6]];
  const key = (row) => (variant(row)[1] ? text(source(row)[0]) : "") + text(variant(row)[0]);
  const tags = [
    ["new", "newly changed"],
    ["changed", data.compared ? "changed, not new" : "changed"],
    ["undecided", "undecided"],
    ["fixed", "fixed"],
    ["documents", "other documents"],
  ];

  const edited = (row) => {
    const whole = text(source(row)[1]);
    const [start, end, change] = variant(row).slice(6);
    const [before, removed, after] = [whole.slice(0, start), whole.slice(start, end), whole.slice(end)];
    const part = (inside, kind) => inside === "" ? "" : element("mark", { class: kind }, words(inside));
    return [
      [words(before), part(removed, "removed"), words(after)],
      [words(before), part(text(change), "added"), words(after)],
    ];
  };

  const documents = (places) => listed(places.map((place) => {
    const [id, label, said] = data.documents[place].map(text);
    return [
      id ? element("code", null, id) : "", label ? [" ", muted("(", words(label), ")")] : "",
      said ? [" ", words(said)] : "",
    ].flat();
  }));

  const side = (title, shown, answer, response, head, places) => element("div", { class: "side" },
    element("p", null, element("b", null, words(title))),
    element("p", { class: "text" }, shown),
    element("p", null, "Answer: ", answer ? strong(text(answer)) : muted("none")),
    response ? element("p", null, "The model wrote: ", words(text(response))) : "",
    places.length ? [element("p", null, head), documents(places)] : "");

  const retrieved = (row) => {
    const [score, replaced] = move(row);
    if (replaced < 0) return "";
    const depth = source(row)[4];
    const rrs = score === null ? "" : "; retriever robustness score " + score.toFixed(3);
    const many = replaced ? replaced + " of " + depth + " documents replaced" : "Same documents";
    return element("p", null, many + rrs + ".");
  };

  const neutral = (row) => {
    const [, , , , , majority, answers] = source(row);
    const each = [];
    for (let at = 0; at < answers.length; at += 2) {
      each.push([at ? " · " : "", words(text(answers[at])), " ", strong(text(answers[at + 1]))]);
    }
    if (!each.length) return "";
    const most = majority ? [" (most: ", strong(text(majority)), ")"] : "";
    return element("p", null, "Control prompts", most, ": ", each.flat());
  };

  const command = (row) => {
    if (!data.explain) return element("p", null, element("code", null, key(row)));
    const suite = data.several ? " --suite " + quoted(text(variant(row)[5])) : "";
    return copied(data.explain + " " + quoted(key(row)) + suite);
  };

  return {
    tags,
    facets: [
      ["identity", "Identity", (row) => variant(row)[2]],
      ["category", "Category", (row) => variant(row)[3]],
      ["relation", "Relation", (row) => variant(row)[4]],
      ["cause", "Cause", (row) => row[3]],
      ["suite", "Suite", (row) => variant(row)[5]],
    ],
    orders: [
      ["", "clearest first", null],
      ["margin", "widest answer margin", (row) => row[7] ?? -1],
      ["rrs", "retrieval moved most", (row) => move(row)[0] ?? -1],
    ],
    key,
    suite: (row) => text(variant(row)[5]),
    searched: (row) => [source(row)[0], source(row)[1], variant(row)[2], variant(row)[3], row[4], row[5]],
    summary: (row) => [
      element("span", { class: "tag " + tags[row[0]][0] }, tags[row[0]][1]),
      words(text(variant(row)[2])),
      element("span", { class: "line" }, words(text(source(row)[1]))),
      row[0] === 4
        ? element("span", { class: "turn" }, strong(move(row)[1] + " of " + source(row)[4]), " documents")
        : element("span", { class: "turn" }, words(text(source(row)[5] || source(row)[2])), " → ", strong(text(row[4]))),
    ],
    detail: (row) => {
      const [left, right] = edited(row);
      const [, , out, arrived] = move(row);
      const who = text(variant(row)[2]) || "Follow-up";
      return [
        element("div", { class: "sides" },
          side(row[8] ? "As the corpus has it" : "Without a speaker", left, source(row)[2], source(row)[3], "Documents that went out:", out),
          side(who, right, row[4], row[5], "Documents that came in:", arrived)),
        row[8] ? element("p", null, words(text(row[8]))) : "",
        retrieved(row),
        neutral(row),
        row[3] ? element("p", null, row[0] === 2 ? "Undecided: " : "What attribution found: ", words(text(row[3])), ".") : "",
        row[7] === null ? "" : element("p", { class: "muted" }, "Margin of the answer: " + row[7].toFixed(2) + " nats."),
        command(row),
      ].flat();
    },
  };
};
