// Workers for pages that are opened as files. Browsers let no page of the scheme `file:` start a worker, and the search
// of the site runs in one: here its script runs in a hidden frame, which a page may always have.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #scope = null
    #waiting = []

    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html>"
      const script = new URL(url, location.href)
      frame.addEventListener("load", () => this.#start(frame.contentWindow, script), { once: true })
      document.body.append(frame)
    }

    postMessage(data) {
      if (this.#scope === null) this.#waiting.push(data)
      else this.#scope.dispatchEvent(new this.#scope.MessageEvent("message", { data }))
    }

    async #start(scope, url) {
      const load = address => new Promise((loaded, failed) => {
        const script = scope.document.createElement("script")
        script.src = new URL(address, url)
        script.onload = loaded
        script.onerror = () => failed(new Error(`cannot load ${script.src}`))
        scope.document.body.append(script)
      })
      // What the script takes for the functions of a worker. (It waits for the promise that `importScripts` gives.)
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      scope.importScripts = async (...addresses) => {
        for (const address of addresses) await load(address)
      }
      await load(url)
      this.#scope = scope
      for (const data of this.#waiting.splice(0)) this.postMessage(data)
    }
  }
}
