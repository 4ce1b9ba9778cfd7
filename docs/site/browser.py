"""Opens pages of the built site in headless Chromium, 1280 and 390 pixels wide, light and dark: no error on the console,
nothing that fails to load, no page wider than its window. Keeps pictures of the first pages.

Usage: browser.py FOLDER_OF_THE_SITE FOLDER_FOR_PICTURES [PAGE...]
"""
import pathlib
import shutil
import sys

from playwright.sync_api import sync_playwright

site, pictures = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
pictures.mkdir(parents=True, exist_ok=True)
pages = sys.argv[3:] or sorted(str(path.relative_to(site)) for path in site.rglob("*.html")
                               if not path.name.startswith(("genindex-", "search")))
KEPT = {"index.html", "start.html", "layouts.html", "guides/own-data.html", "guides/nan.html", "operators/pooling.html",
        "operators/index.html", "reference/bnns.html", "performance.html"}
faults, opened = [], 0
with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
                                   args=["--no-sandbox", "--disable-gpu"])
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            where = ""
            page.on("console", lambda m: faults.append(f"{where}: console: {m.text}") if m.type in ("error", "warning") else None)
            page.on("pageerror", lambda e: faults.append(f"{where}: {e}"))
            page.on("requestfailed", lambda r: faults.append(f"{where}: {r.url} did not load"))
            # Every page at phone width in the light, where tables and code are most likely to be too wide; else those kept.
            for name in pages:
                if not (width == 390 and scheme == "light") and name not in KEPT and not sys.argv[3:]:
                    continue
                where = f"{name} at {width}, {scheme}"
                page.goto((site / name).as_uri())
                opened += 1
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    widest = page.evaluate(
                        "[...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
                        ".slice(0, 3).map(e => e.tagName + '.' + e.className + ' ' + (e.textContent || '').trim().slice(0, 40))")
                    faults.append(f"{where}: {wide} pixels wide; {widest}")
                if name in KEPT or sys.argv[3:]:
                    page.screenshot(path=pictures / f"{name.replace('/', '-').removesuffix('.html')}-{width}-{scheme}.png")
            context.close()
    browser.close()
print(f"browser: {opened} views of {len(pages)} pages, {len(faults)} faults; pictures in {pictures}")
if not opened:
    faults.append(f"no pages below {site}")
sys.exit("\n".join(faults[:40]) if faults else 0)
