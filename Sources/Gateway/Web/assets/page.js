// @ts-check

/**
 * A page of one stream: the studio for those on stage, the programme for the audience. Both are lists of widgets on
 * the same layers, so that somebody can go from one to the other without loading a page.
 *
 * The address may say `?source=camera|sound|screen|test`, `?quality=1080|720|480|360`, `?fps=60|30|15`, `?simulcast=0|1` and
 * `?codec=vp8|vp9|h264|av1`.
 */

import { LAYERS, WidgetHost } from "./layers.js";
import { missingWebRTC } from "./own-media.js";
import { resume } from "./resume.js";
import { Room } from "./room.js";
import { audienceControls } from "./widgets/audience-controls.js";
import { clipper } from "./widgets/clipper.js";
import { desk } from "./widgets/desk.js";
import { devices } from "./widgets/devices.js";
import { encoder } from "./widgets/encoder.js";
import { gate } from "./widgets/gate.js";
import { grid } from "./widgets/grid.js";
import { hand } from "./widgets/hand.js";
import { invitation } from "./widgets/invitation.js";
import { lobby } from "./widgets/lobby.js";
import { lastPicture } from "./widgets/last-picture.js";
import { messages } from "./widgets/messages.js";
import { numbers } from "./widgets/numbers.js";
import { people } from "./widgets/people.js";
import { pictureMenu } from "./widgets/picture-menu.js";
import { kept, playback } from "./widgets/playback.js";
import { pictureOnly } from "./widgets/picture-only.js";
import { problem } from "./widgets/problem.js";
import { programme } from "./widgets/programme.js";
import { rewind } from "./widgets/rewind.js";
import { recorder, recordingNews } from "./widgets/recorder.js";
import { restream } from "./widgets/restream.js";
import { schedule } from "./widgets/schedule.js";
import { share } from "./widgets/share.js";
import { sources } from "./widgets/sources.js";
import { status } from "./widgets/status.js";
import { studioNumbers } from "./widgets/studio-numbers.js";
import { summary } from "./widgets/summary.js";
import { talk, talkDesk } from "./widgets/talk.js";
import { title } from "./widgets/title.js";
import { voices } from "./widgets/voices.js";
import { warning } from "./widgets/warning.js";

/** In the order in which they lie in their layers; a new widget has to be named here, and nowhere else. */
const WIDGETS = {
  audience: [
    title, lastPicture, programme, playback, status, gate, warning, numbers, talk, rewind, audienceControls, pictureMenu, pictureOnly, hand,
    invitation, messages,
  ],
  studio: [
    title, grid, voices, warning, problem, lobby, talkDesk, sources, summary, schedule, share, encoder, restream, recorder, clipper, kept,
    people,
    studioNumbers, devices, desk, invitation, messages, recordingNews,
  ],
  // For whoever was sent away, or has a link that is no longer valid: nothing that looks as if it worked.
  outside: [title, desk, messages],
};

/** @param {import("./room.js").View} intent what the page was opened for */
export async function openPage(intent) {
  const room = new Room(intent);
  const layers = /** @type {Record<typeof LAYERS[number], HTMLElement>} */ (Object.fromEntries(
    LAYERS.map((name) => [name, document.querySelector(`[data-layer=${name}]`)])));
  const host = new WidgetHost(layers, room);
  /** @type {import("./room.js").View | null} */
  let shown = null;
  const update = () => {
    const { view } = room;
    document.body.classList.toggle("studio", view === "studio");
    document.body.classList.toggle("player", view === "audience");
    // The setting is about what viewers see; nobody on stage can lose the means to act.
    host.show(view === "studio" && room.isOut ? WIDGETS.outside : WIDGETS[view], view === "studio" ? LAYERS : room.info?.layers ?? LAYERS);
    document.body.dataset.state = room.state;
    // What had the focus is gone with the other view.
    if (shown && shown !== view) {
      document.querySelector("main")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    shown = view;
  };
  room.addEventListener("change", update);
  // Leaving the page ends at once what we send; a page that comes back from the browser's cache starts afresh.
  addEventListener("pagehide", () => {
    room.onAir.stop();
    room.viewing.connection.close();
  });
  // Somebody has unlocked the stream, or brings another link.
  addEventListener("hashchange", () => {
    room.sync.reconnect();
    room.viewing.showToken();
  });
  addEventListener("pageshow", (event) => event.persisted && !room.viewing.rewind.isOn && room.viewing.goLive());
  update();
  // For the console, and for tests that look at the peer connection itself.
  Object.assign(globalThis, {
    rostrum: {
      room, sync: room.sync, widgets: host,
      get connection() {
        return room.view === "studio" ? room.onAir.connection : room.viewing.connection;
      },
    },
  });
  if (intent !== "studio") return;
  room.own.setProblem(missingWebRTC(room.isHost));
  await resume(room);
}
