// @ts-check

/**
 * The page of a stream: the studio for people on stage, the programme for the audience. Both are lists of widgets on
 * the same layers, so that people can change between them without loading a page.
 *
 * Options in the address: `?source=camera|sound|screen|test`, `?quality=1080|720|480|360`, `?fps=60|30|15`,
 * `?simulcast=0|1` and `?codec=vp8|vp9|h264|av1`.
 */

import { keepFocus } from "./focus.js";
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

/** In their order within the layers. New widgets are only added here. */
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
  // For people who were removed, or whose link is no longer valid: nothing that looks as if it worked.
  outside: [title, desk, messages],
};

/** @param {import("./room.js").View} intent what the page was opened as */
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
    // The setting is for viewers; people on stage keep all controls.
    host.show(view === "studio" && room.isOut ? WIDGETS.outside : WIDGETS[view], view === "studio" ? LAYERS : room.info?.layers ?? LAYERS);
    document.body.dataset.state = room.state;
    // The focused element was removed with the other view.
    if (shown && shown !== view) {
      document.querySelector("main")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    shown = view;
  };
  room.addEventListener("change", update);
  keepFocus(document.body);
  // Leaving the page ends sessions at once; a page restored from the back/forward cache starts new ones.
  addEventListener("pagehide", () => {
    room.onAir.stop();
    room.viewing.connection.close();
  });
  // The viewer has unlocked the stream, or opened another link.
  addEventListener("hashchange", () => {
    room.sync.reconnect();
    room.viewing.showToken();
  });
  addEventListener("pageshow", (event) => event.persisted && !room.viewing.rewind.isOn && room.viewing.goLive());
  update();
  // For debugging, and for tests that use the peer connection itself.
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
