// Colours Python source. Returns nodes, never markup, so that no source can become part of the page.
function highlighted(source) {
  const token = new RegExp(
    [
      /(?<c>#[^\n]*)/,
      /(?<s>[rbfuRBFU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
      /(?<=\b(?:def|class)\s+)(?<d>\w+)/,
      /\b(?<k>and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|self|super|try|while|with|yield)\b/,
      /\b(?<n>None|True|False|(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?)j?)\b/,
    ].map((part) => part.source).join("|"), "g");
  const nodes = [];
  let end = 0;
  for (const match of source.matchAll(token)) {
    nodes.push(source.slice(end, match.index));
    const span = document.createElement("span");
    span.className = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    span.textContent = match[0];
    nodes.push(span);
    end = match.index + match[0].length;
  }
  nodes.push(source.slice(end));
  return nodes;
}
