// Service worker, written by the build from this template. Keeps one build of the page for use without a network.
// All or nothing: either every file of the page and the engine is stored, or the install fails and the old worker goes on.
const BUILD = "{{build}}";
const PREFIX = "roofline-";
const CACHE = PREFIX + BUILD;
/** @type {[path: string, sha256: string, tier: string][]} */
const ASSETS = {{assets_json}};
const scope = new URL("./", self.location.href);
const hashed = new Map(ASSETS.map(([path, sha256]) => [new URL(path, scope).href, sha256]));
hashed.set(scope.href, hashed.get(new URL("index.html", scope).href));

const integrity = (hex) => "sha256-" + btoa(String.fromCharCode(...hex.match(/../g).map((pair) => parseInt(pair, 16))));

async function store(cache, [path, sha256]) {
  // Files in hashed or versioned folders may come out of the browser's cache (the page has just fetched them); others must be fresh.
  const response = await fetch(new URL(path, scope), { cache: path.includes("/") ? "default" : "reload", integrity: integrity(sha256) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  await cache.put(new URL(path, scope), response);
}

self.addEventListener("install", (event) => event.waitUntil((async () => {
  const cache = await caches.open(CACHE);
  const wanted = ASSETS.filter(([, , tier]) => tier !== "extra");
  try {
    for (let i = 0; i < wanted.length; i += 6) await Promise.all(wanted.slice(i, i + 6).map((asset) => store(cache, asset)));
  } catch (error) {
    await caches.delete(CACHE);
    throw error;
  }
})()));

self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
  await self.clients.claim();
})()));

self.addEventListener("message", (event) => { if (event.data === "take-over") self.skipWaiting(); });

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  url.search = url.hash = "";
  if (event.request.method !== "GET" || !hashed.has(url.href)) return; // anything else goes to the network as if we were not here
  event.respondWith((async () => {
    const cache = await caches.open(CACHE);
    const key = url.href === scope.href ? new URL("index.html", scope).href : url.href;
    const found = await cache.match(key);
    if (found) return found;
    const response = await fetch(event.request);
    if (response.ok && response.type === "basic") event.waitUntil(cache.put(key, response.clone()).catch(() => {}));
    return response;
  })());
});
