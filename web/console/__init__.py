"""The console: pages that show whoever runs the bot whether it is well, what it did and why.

A page is a handler that calls `render(request, "page.html", **values)` of `web/console/page.py`, a template in
`templates/` that extends `layout.html`, and a line in ROUTES of `web/console/app.py`; one that stands in the navigation
has a line in PAGES of `web/console/page.py`, too.

- `shown(request)` gives what may be looked at of the bot of the moment; before there is one, the visitor is told so.
- A form is `<form method="post">` with `<input type="hidden" name="csrf" value="{{ csrf }}">` in it. Its handler is
  called only once that and the origin of the request are checked, and reads `await request.post()`.
- A page is live where its `<main>` holds an element with `data-live="/console/its/stream"`, and the handler of that
  address returns `await stream(request, draw)` of `web/console/stream.py`. What `draw()` returns, HTML by the id of the
  element that it goes into, is made of the same macros or parts of templates as the page: `part(request, "x.html")`.
- Templates escape all that they are given; SVG is drawn by templates, too. Nothing is inline: styles stand in
  `static/console.css`, in the colours of `static/theme.css`, and scripts in `static/`, each named in STATIC.
"""
