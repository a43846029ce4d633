// TeX formulas as MathML, which browsers set and read aloud themselves. It knows what
// replies use; where it meets anything else, the source stays as it is.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const DEEPEST = 40;
const TOKEN = /\\(?:operatorname\*|[A-Za-z]+|[^])|\s+|\d+(?:[.,]\d+)*|[^]/gu;

const pairs = (text) => new Map(text.trim().split(/\s+/).map((one) => one.split(":")));

const LETTERS = pairs(`alpha:α beta:β gamma:γ delta:δ epsilon:ϵ varepsilon:ε zeta:ζ eta:η theta:θ vartheta:ϑ iota:ι kappa:κ
  lambda:λ mu:μ nu:ν xi:ξ omicron:ο pi:π varpi:ϖ rho:ρ varrho:ϱ sigma:σ varsigma:ς tau:τ upsilon:υ phi:ϕ varphi:φ chi:χ psi:ψ omega:ω
  Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ Upsilon:Υ Phi:Φ Psi:Ψ Omega:Ω
  infty:∞ hbar:ℏ ell:ℓ partial:∂ nabla:∇ emptyset:∅ varnothing:∅ Re:ℜ Im:ℑ aleph:ℵ imath:ı jmath:ȷ top:⊤ bot:⊥ angle:∠ triangle:△
  degree:° prime:′ dots:… ldots:… cdots:⋯ vdots:⋮ ddots:⋱ square:□ Box:□ checkmark:✓ star:⋆ %:% #:# $:$ &:& _:_`);
const OPERATORS = pairs(`times:× cdot:⋅ div:÷ pm:± mp:∓ ast:∗ circ:∘ bullet:• oplus:⊕ otimes:⊗ cap:∩ cup:∪ setminus:∖ land:∧ wedge:∧ lor:∨ vee:∨ neg:¬ lnot:¬
  le:≤ leq:≤ leqslant:⩽ ge:≥ geq:≥ geqslant:⩾ ne:≠ neq:≠ ll:≪ gg:≫ approx:≈ equiv:≡ sim:∼ simeq:≃ cong:≅ propto:∝ mid:∣ nmid:∤ parallel:∥ perp:⊥ doteq:≐
  in:∈ notin:∉ ni:∋ subset:⊂ subseteq:⊆ supset:⊃ supseteq:⊇ forall:∀ exists:∃ nexists:∄ therefore:∴ because:∵ vdash:⊢ models:⊨
  to:→ rightarrow:→ leftarrow:← gets:← leftrightarrow:↔ Rightarrow:⇒ Leftarrow:⇐ Leftrightarrow:⇔ implies:⟹ impliedby:⟸ iff:⟺ mapsto:↦ longrightarrow:⟶ Longrightarrow:⟹
  uparrow:↑ downarrow:↓ rightleftharpoons:⇌ hookrightarrow:↪ |:‖ {:{ }:} lbrace:{ rbrace:} langle:⟨ rangle:⟩ lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ lvert:| rvert:| vert:| lVert:‖ rVert:‖ Vert:‖ backslash:\\ lbrack:[ rbrack:]`).set("colon", ":");
const LARGE = pairs("sum:∑ prod:∏ coprod:∐ bigcup:⋃ bigcap:⋂ bigoplus:⨁ bigotimes:⨂ bigvee:⋁ bigwedge:⋀");
const INTEGRALS = pairs("int:∫ iint:∬ iiint:∭ oint:∮");
const FUNCTIONS = new Set("sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan log ln lg exp deg dim ker arg hom gcd lcm".split(" "));
const LIMITS = new Set("lim max min sup inf limsup liminf argmax argmin det Pr".split(" "));
const ACCENTS = pairs("hat:^ widehat:^ bar:¯ overline:‾ vec:→ overrightarrow:→ dot:˙ ddot:¨ tilde:~ widetilde:~ check:ˇ breve:˘");
const BELOW = pairs("underline:_ underbrace:⏟");
const SPACES = pairs(",:0.17em ;:0.28em quad:1em qquad:2em thinspace:0.17em enspace:0.5em").set(":", "0.22em").set(" ", "0.33em").set("!", "0em").set(">", "0.22em");
const TEXTS = new Set("text textrm textnormal textsf texttt textit textbf mbox".split(" "));
const IGNORED = new Set("displaystyle textstyle scriptstyle limits nolimits nonumber notag boldsymbol rm bf it big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm".split(" "));
/** The letters of an alphabet: its first capital, its first small letter, and those that stand elsewhere. */
const ALPHABETS = {
  mathbb: [0x1D538, 0x1D552, pairs("C:ℂ H:ℍ N:ℕ P:ℙ Q:ℚ R:ℝ Z:ℤ")],
  mathcal: [0x1D49C, 0x1D4B6, pairs("B:ℬ E:ℰ F:ℱ H:ℋ I:ℐ L:ℒ M:ℳ R:ℛ e:ℯ g:ℊ o:ℴ")],
  mathfrak: [0x1D504, 0x1D51E, pairs("C:ℭ H:ℌ I:ℑ R:ℜ Z:ℨ")],
  mathbf: [0x1D400, 0x1D41A, new Map()],
};
ALPHABETS.mathscr = ALPHABETS.mathcal;
ALPHABETS.bm = ALPHABETS.mathbf;
const FENCES = { matrix: ["", ""], smallmatrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"], vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], cases: ["{", ""], array: ["", ""] };
const ALIGNED = new Set("aligned align align* split gathered gather gather* equation equation* multline multline* eqnarray eqnarray*".split(" "));

/** The formula as an element, or null if some of it is not known. */
export function formula(source, isDisplayed) {
  try {
    const math = new Parser(source, isDisplayed).all();
    if (isDisplayed) math.setAttribute("display", "block");
    return math;
  } catch (error) {
    if (error instanceof Unknown) return null;
    throw error;
  }
}

class Unknown extends Error {}

function make(name, ...children) {
  const element = document.createElementNS(SPACE, name);
  for (const child of children.flat()) element.append(child);
  return element;
}

function withAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const row = (nodes) => (nodes.length === 1 ? nodes[0] : make("mrow", nodes));
const space = (width) => withAttributes(make("mspace"), { width });
const upright = (text) => withAttributes(make("mi", text), { mathvariant: "normal" });
const fence = (text) => withAttributes(make("mo", text), { fence: "true", stretchy: "true" });

class Parser {
  constructor(source, isDisplayed) {
    this.tokens = source.match(TOKEN) ?? [];
    this.place = 0;
    this.depth = 0;
    this.isDisplayed = isDisplayed;
  }

  all() {
    const rows = this.rows(() => this.place >= this.tokens.length);
    return make("math", rows.length === 1 && rows[0].length === 1 ? rows[0][0] : this.table(rows, "aligned"));
  }

  peek() {
    return this.tokens[this.place];
  }

  /** The next token that is no space. */
  take() {
    this.skip();
    const token = this.tokens[this.place++];
    if (token === undefined) throw new Unknown();
    return token;
  }

  skip() {
    while (this.peek()?.trim() === "") this.place += 1;
  }

  /** Rows of cells, up to where `ends` holds. */
  rows(ends) {
    const rows = [[]];
    for (;;) {
      rows.at(-1).push(row(this.sequence(ends)));
      if (ends()) break;
      const token = this.take();
      if (token === "\\\\") {
        this.skip();
        if (this.peek() === "[") this.brackets();
        rows.push([]);
      } else if (token !== "&") {
        throw new Unknown();
      }
    }
    const last = rows.at(-1);
    if (rows.length > 1 && last.length === 1 && last[0].childNodes.length === 0) rows.pop();
    return rows;
  }

  /** What follows, up to where `ends` holds, a cell or a row ends. */
  sequence(ends) {
    if (++this.depth > DEEPEST) throw new Unknown();
    const nodes = [];
    for (this.skip(); !ends() && this.peek() !== "&" && this.peek() !== "\\\\"; this.skip()) {
      if (this.peek() === undefined) throw new Unknown();
      nodes.push(...this.scripted());
    }
    this.depth -= 1;
    return nodes;
  }

  /** One thing with what is above and below it. */
  scripted() {
    const base = ["^", "_", "'"].includes(this.peek()) ? make("mrow") : this.one();
    if (!base) return [];
    let below = null;
    let above = null;
    for (this.skip(); ["^", "_", "'"].includes(this.peek()); this.skip()) {
      const mark = this.take();
      if (mark === "'") {
        let primes = "′";
        while (this.peek() === "'") primes += this.take() && "′";
        above = above ? make("mrow", above, make("mo", primes)) : make("mo", primes);
      } else if (mark === "_" && !below) {
        below = this.argument();
      } else if (mark === "^") {
        const raised = this.argument();
        above = above ? make("mrow", above, raised) : raised;
      } else {
        throw new Unknown();
      }
    }
    const isLarge = base.hasLimits && this.isDisplayed;
    const [under, over, both] = isLarge ? ["munder", "mover", "munderover"] : ["msub", "msup", "msubsup"];
    const made = below && above ? make(both, base, below, above) : below ? make(under, base, below) : above ? make(over, base, above) : base;
    return base.isFunction && !["(", "\\left"].includes(this.peek()) ? [made, space("0.17em")] : [made];
  }

  /** An argument: a group or one token. */
  argument() {
    this.skip();
    // As TeX has it, \frac12 is one half.
    if (/^\d./.test(this.peek())) {
      const [digit, ...rest] = this.peek();
      this.tokens[this.place] = rest.join("");
      return make("mn", digit);
    }
    if (++this.depth > DEEPEST) throw new Unknown();
    const made = this.one() ?? make("mrow");
    this.depth -= 1;
    return made;
  }

  group() {
    const nodes = this.sequence(() => this.peek() === "}");
    this.take();
    return row(nodes);
  }

  /** A group as the text it is. */
  words() {
    this.skip();
    if (this.peek() !== "{") return this.take();
    this.place += 1;
    let text = "";
    for (let open = 1; ;) {
      const token = this.tokens[this.place++];
      if (token === undefined || token === "$") throw new Unknown();
      if (token === "{") open += 1;
      if (token === "}" && --open === 0) return text;
      text += token === "~" || token === "\\ " ? "\u00A0" : /^\\[%#$&_{}]$/.test(token) ? token[1] : token;
      if (/^\\[A-Za-z\\]/.test(token)) throw new Unknown();
    }
  }

  brackets() {
    this.place += 1;
    const nodes = this.sequence(() => this.peek() === "]");
    this.place += 1;
    return row(nodes);
  }

  /** The next thing, or nothing for what only changes sizes. */
  one() {
    const token = this.take();
    if (/^\d/.test(token)) return make("mn", token);
    if (token === "{") return this.group();
    if (token === "~") return space("0.33em");
    if (token === "}" || token === "$") throw new Unknown();
    if (token.length > 1 && token[0] === "\\") return this.command(token.slice(1));
    return /^\p{L}$/u.test(token) ? make("mi", token) : this.operator(token);
  }

  operator(token) {
    const made = make("mo", { "-": "−", "*": "∗" }[token] ?? token);
    // Beside a term, and not as high as the formula.
    if ("|()[]".includes(token)) made.setAttribute("stretchy", "false");
    return made;
  }

  command(name) {
    const letter = LETTERS.get(name);
    if (letter) return /[Α-Ω]|[^\p{L}]/u.test(letter) ? upright(letter) : make("mi", letter);
    const sign = OPERATORS.get(name) ?? INTEGRALS.get(name);
    if (sign) return withAttributes(make("mo", sign), /[{}[\]|‖⟨⟩⌊⌋⌈⌉]/.test(sign) ? { stretchy: "false" } : {});
    if (LARGE.has(name)) return limited(make("mo", LARGE.get(name)));
    if (LIMITS.has(name)) return limited(make("mo", name.replace(/^(lim|arg)(sup|inf|max|min)$/, "$1 $2")));
    if (FUNCTIONS.has(name)) return Object.assign(make("mi", name), { isFunction: true });
    if (SPACES.has(name)) return space(SPACES.get(name));
    if (TEXTS.has(name)) return make("mtext", this.words().replace(/^ | $/g, "\u00A0"));
    if (Object.hasOwn(ALPHABETS, name)) return upright(alphabet(this.words(), ALPHABETS[name]));
    if (ACCENTS.has(name)) return withAttributes(make("mover", this.argument(), make("mo", ACCENTS.get(name))), { accent: "true" });
    if (name === "overbrace") return limited(make("mover", this.argument(), make("mo", "⏞")));
    if (BELOW.has(name)) return limited(make("munder", this.argument(), make("mo", BELOW.get(name))));
    if (IGNORED.has(name)) return null;
    return this.structure(name);
  }

  structure(name) {
    switch (name) {
      case "frac": case "dfrac": case "tfrac": case "cfrac":
        return make("mfrac", this.argument(), this.argument());
      case "binom": case "dbinom": case "tbinom":
        return make("mrow", fence("("), withAttributes(make("mfrac", this.argument(), this.argument()), { linethickness: "0" }), fence(")"));
      case "sqrt": {
        this.skip();
        const index = this.peek() === "[" ? this.brackets() : null;
        return index ? make("mroot", this.argument(), index) : make("msqrt", this.argument());
      }
      case "left": {
        const open = this.delimiter();
        const nodes = this.sequence(() => this.peek() === "\\right");
        this.take();
        const close = this.delimiter();
        return make("mrow", open ? fence(open) : [], nodes, close ? fence(close) : []);
      }
      case "overset": case "stackrel": {
        const above = this.argument();
        return make("mover", this.argument(), above);
      }
      case "underset": {
        const below = this.argument();
        return make("munder", this.argument(), below);
      }
      case "operatorname": case "operatorname*":
        return Object.assign(make("mi", this.words()), name.endsWith("*") ? { hasLimits: true } : { isFunction: true });
      case "boxed":
        return withAttributes(make("mrow", this.argument()), { class: "boxed" });
      case "not": {
        const made = this.argument();
        if (made.localName !== "mo") throw new Unknown();
        made.textContent += "\u0338";
        return made;
      }
      case "bmod": case "mod":
        return make("mo", " mod ");
      case "pmod":
        return make("mrow", make("mtext", "\u2003(mod\u00A0"), this.argument(), make("mtext", ")"));
      case "tag":
        return make("mtext", `\u2003(${this.words()})`);
      case "mathrm": case "mathsf": case "mathtt": case "mathnormal": {
        const made = make("mrow", this.argument());
        for (const one of made.querySelectorAll("mi")) one.setAttribute("mathvariant", "normal");
        return made;
      }
      case "begin":
        return this.environment();
      default:
        throw new Unknown();
    }
  }

  delimiter() {
    const token = this.take();
    if (token === ".") return "";
    if (token.length === 1) return token;
    const sign = OPERATORS.get(token.slice(1));
    if (!sign) throw new Unknown();
    return sign;
  }

  environment() {
    const name = this.words();
    this.skip();
    if (name === "array") this.words();
    if (!Object.hasOwn(FENCES, name) && !ALIGNED.has(name)) throw new Unknown();
    const rows = this.rows(() => this.peek() === "\\end");
    this.take();
    if (this.words() !== name) throw new Unknown();
    const [open, close] = FENCES[name] ?? ["", ""];
    return make("mrow", open ? fence(open) : [], this.table(rows, name), close ? fence(close) : []);
  }

  table(rows, name) {
    const sides = ALIGNED.has(name) ? ["right", "left"] : name === "cases" ? ["left"] : ["middle"];
    const table = make("mtable", rows.map((cells) => make("mtr", cells.map((cell, column) =>
      withAttributes(make("mtd", cell), { class: cells.length === 1 && ALIGNED.has(name) ? "middle" : sides[column % sides.length] })))));
    if (ALIGNED.has(name)) withAttributes(table, { class: "aligned", displaystyle: "true" });
    return table;
  }
}

/** What gets its limits below and above it. */
const limited = (element) => Object.assign(element, { hasLimits: true });

function alphabet(text, [capital, small, elsewhere]) {
  return [...text].map((letter) => {
    if (elsewhere.has(letter)) return elsewhere.get(letter);
    if (/[A-Z]/.test(letter)) return String.fromCodePoint(capital + letter.charCodeAt(0) - 65);
    if (/[a-z]/.test(letter)) return String.fromCodePoint(small + letter.charCodeAt(0) - 97);
    if (/[\w .,]/.test(letter)) return letter;
    throw new Unknown();
  }).join("");
}
