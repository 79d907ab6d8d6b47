// Before the first paint: the theme the visitor chose last time, so that nothing flashes. Storage may be refused; then the system's theme holds.
try {
  var theme = localStorage.getItem("roofline-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (e) { /* no storage, no memory */ }
document.documentElement.classList.add("js");
