"""A clock for pages that goes on only when a test says so: minutes of timers pass at once, and in their order."""

from __future__ import annotations

#: After this, `passTime(milliseconds)` runs what is due until then, and `timers()` tells how many there are.
CLOCK = """() => {
    const waiting = new Map(), later = setTimeout;
    let now = 0, last = 0;
    performance.now = () => now;
    // What promises bring about happens before the next timer.
    const settle = () => new Promise(done => later(done));
    const set = (action, wait, given, isRepeated) => {
        const time = Math.max(Number(wait) || 0, 1);
        waiting.set(++last, {at: now + time, time, isRepeated, run: () => action(...given)});
        return last;
    };
    globalThis.setTimeout = (action, wait, ...given) => set(action, wait, given, false);
    globalThis.setInterval = (action, wait, ...given) => set(action, wait, given, true);
    globalThis.clearTimeout = globalThis.clearInterval = number => void waiting.delete(number);
    globalThis.timers = () => waiting.size;
    globalThis.settled = settle;
    globalThis.passTime = async milliseconds => {
        const end = now + milliseconds;
        await settle();
        for (;;) {
            const [next] = [...waiting].filter(([, {at}]) => at <= end).sort(([, one], [, other]) => one.at - other.at);
            if (!next) break;
            const [number, timer] = next;
            now = Math.max(now, timer.at);
            if (timer.isRepeated) timer.at += timer.time;
            else waiting.delete(number);
            timer.run();
            await settle();
        }
        now = end;
    };
}"""
