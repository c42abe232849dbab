// Check every text on the page against WCAG 2.2, success criterion 1.4.3.
// Returns the number of texts, and those with too little contrast.
for (const part of document.querySelectorAll("details")) part.open = true;
// Judge the colours in which gradual changes end.
for (const change of document.getAnimations()) if (change instanceof CSSTransition) change.finish();

const parse = (colour) => {
  const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
  return [red, green, blue, alpha];
};
const over = (top, below) => [...[0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])), 1];
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = (colour) => {
  const [red, green, blue] = colour.map((value) => linear(value / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
// Background colour of an element: the first opaque ancestor's, under the transparent ones.
const ground = (element) => {
  if (!element) return [255, 255, 255, 1];
  const own = parse(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own : over(own, ground(element.parentElement));
};

const faint = new Set();
let texts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || element.closest("script, style") || !element.checkVisibility()) continue;
  texts += 1;
  const style = getComputedStyle(element);
  const behind = ground(element);
  const [darker, lighter] = [luminance(over(parse(style.color), behind)), luminance(behind)].sort((a, b) => a - b);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const contrast = (lighter + 0.05) / (darker + 0.05);
  if (contrast < (large ? 3 : 4.5)) faint.add(`${contrast.toFixed(2)}: ${node.data.trim().slice(0, 60)}`);
}
return { faint: [...faint], texts };
