/* Search in pages that are opened from a folder.

   Browsers start no worker from a file, so the search's script runs in a hidden frame instead.
   The theme knows this way by the name IFrameWorker. Pages from a server use real workers. */

if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      const script = String(url).replace(/"/g, "%22");
      this.inside.document.open();
      this.inside.document.write(`<!doctype html><body></body>`);
      this.inside.document.close();
      // What the script posts arrives here as a message of the worker.
      this.inside.postMessage = (data) => this.deliver(data);
      // Scripts are awaited, so the answer is something that has `then`.
      this.inside.importScripts = (...urls) => ({ then: (done) => this.load(urls, done) });
      this.load([script], () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.post(data));
      });
    }

    // Load scripts into the frame, one after the other.
    load(urls, done) {
      if (urls.length === 0) {
        done();
        return;
      }
      const script = this.inside.document.createElement("script");
      script.src = urls[0];
      script.onload = script.onerror = () => this.load(urls.slice(1), done);
      this.inside.document.body.append(script);
    }

    deliver(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    post(data) {
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }

    postMessage(data) {
      // Like a worker's, the answer comes later and never during the call.
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.post(data));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
