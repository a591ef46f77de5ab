"""The console: pages that show the bot's owner its health, what it did and why.

A page is a handler that calls `render(request, "page.html", **values)` of `web/console/page.py`, a template in
`templates/` that extends `layout.html`, and a line in ROUTES of `web/console/app.py`. A page in the navigation also has
a line in PAGES of `web/console/page.py`.

- `shown(request)` returns the parts of the current bot that pages may read, or shows the visitor that it still starts.
- A form is `<form method="post">` with `<input type="hidden" name="csrf" value="{{ csrf }}">` in it. Its handler is
  called only after that token and the origin of the request are checked, and reads `await request.post()`.
- A page is live if its `<main>` has an element with `data-live="/console/its/stream"`, and the handler of that address
  returns `await stream(request, draw)` of `web/console/stream.py`. `draw()` returns HTML by the id of the element that
  it replaces, made of the same macros or templates as the page: `part(request, "x.html")`.
- Templates escape all values; SVG is drawn by templates, too. Nothing is inline: styles are in `static/console.css`,
  with the colours of `static/theme.css`, scripts in `static/`, and each file is named in STATIC.
"""
