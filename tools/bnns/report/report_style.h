// The report's style sheet. Every colour is a variable, set once for light and once for dark.
#pragma once

namespace bnns::tool {

inline constexpr char kReportStyle[] = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5c6a7a; --rule: #dfe4ea;
  --accent: #1a6fd4; --good: #12855a; --bad: #c8371f; --good-rgb: 18, 133, 90; --bad-rgb: 200, 55, 31;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11151a; --card: #1a2028; --ink: #e6ebf1; --soft: #93a1b1; --rule: #2c3540;
    --accent: #6cb0ff; --good: #46c894; --bad: #ff7a62; --good-rgb: 52, 168, 120; --bad-rgb: 235, 88, 62;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 48px; display: grid; gap: 20px; }
header h1 { margin: 0; font-size: 26px; letter-spacing: -0.01em; }
header p { margin: 4px 0 0; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 18px 22px 20px; min-width: 0; }
h2 { margin: 0 0 2px; font-size: 16px; }
.lead { margin: 0 0 12px; color: var(--soft); font-size: 13.5px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px; }
.figures div { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 14px 18px; }
.figures b { display: block; white-space: nowrap; font-size: 26px; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; }
.figures span { color: var(--soft); font-size: 13.5px; }
.figures .main b { color: var(--good); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 20px; }
svg { width: 100%; height: auto; display: block; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 12px; }
svg polyline { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg polyline.raw { stroke: var(--accent); stroke-width: 1; opacity: 0.32; }
svg polyline.smooth { stroke: var(--accent); }
svg polyline.test { stroke: var(--good); }
svg circle.test { fill: var(--good); }
svg polyline.train { stroke: var(--soft); stroke-dasharray: 5 5; stroke-width: 1.6; }
svg circle.train { fill: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 6px; color: var(--soft); font-size: 13px; }
.legend i { display: inline-block; width: 18px; height: 0; border-top: 2.5px solid; vertical-align: middle; margin-right: 7px; }
.legend .raw { border-color: var(--accent); opacity: 0.4; } .legend .smooth { border-color: var(--accent); }
.legend .test { border-color: var(--good); } .legend .train { border-color: var(--soft); border-top-style: dashed; }
.scroll { overflow: auto; max-height: 560px; } .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
.epochs { border-collapse: collapse; width: 100%; font-size: 13.5px; }
.epochs th, .epochs td { text-align: right; padding: 3px 6px; border-bottom: 1px solid var(--rule); font-weight: 400; }
.epochs th:first-child { text-align: left; } .epochs thead th { color: var(--soft); font-weight: 600; } .epochs .kept > * { font-weight: 700; }
.confusion { border-collapse: separate; border-spacing: 2px; width: 100%; table-layout: fixed; font-size: 13px; }
.confusion th { color: var(--soft); font-weight: 600; padding: 4px 0; text-align: center; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.confusion .down { vertical-align: bottom; } .confusion .down span { writing-mode: vertical-rl; transform: rotate(180deg); }
.confusion tbody th { text-align: right; padding-right: 6px; font-size: 12px; } .scroll:has(.confusion) { max-height: none; }
.confusion td { text-align: center; padding: 0; height: 34px; border-radius: 5px; }
.confusion .zero { color: var(--soft); opacity: 0.45; }
.confusion .recall { color: var(--soft); font-size: 12px; width: 54px; text-align: right; white-space: nowrap; }
.confusion .axis { font-weight: 400; font-size: 12px; text-align: center; }
.mistakes { display: grid; grid-template-columns: repeat(auto-fill, minmax(78px, 1fr)); gap: 14px 12px; }
.mistakes.wide { grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); }
.mistakes figure { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.mistakes img { width: 100%; aspect-ratio: 1; object-fit: contain; background: #000; border-radius: 8px; image-rendering: pixelated; display: block; }
.mistakes figcaption { font-size: 12.5px; line-height: 1.35; margin-top: 5px; color: var(--soft); }
.mistakes strong { color: var(--bad); font-size: 14px; } .mistakes em { font-style: normal; font-weight: 600; font-size: 14px; color: var(--ink); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 8px 20px; margin: 10px 0 0; font-size: 14px; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
code { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
@media (max-width: 640px) { svg .tick { font-size: 20px; } .figures b { font-size: 21px; } .legend, .lead, .figures span { font-size: 14px; } main { padding: 20px 12px 32px; gap: 14px; } section { padding: 14px 14px 16px; } .facts { grid-template-columns: 1fr; gap: 0; } .facts dd { margin-bottom: 8px; } }
@media print { body { background: none; } section, .figures div { break-inside: avoid; } }
)css";

}  // namespace bnns::tool
