// @ts-check

/** What a player says, in English. An app replaces any of it; `{…}` is filled in. */
export const STRINGS = {
  player: "Video player",
  play: "Play",
  pause: "Pause",
  mute: "Mute",
  unmute: "Turn sound on",
  volume: "Volume",
  volumeValue: "{percent} %",
  live: "Live",
  viewers: "{count} watching",
  oneViewer: "1 watching",
  quality: "Quality",
  qualityAuto: "Auto",
  qualityAutoHint: "The best that your connection takes",
  qualityHigh: "High",
  qualityHighHint: "Always the best picture, or none",
  qualityLow: "Low",
  qualityLowHint: "A small picture, to save data",
  qualitySound: "Sound only",
  qualitySoundHint: "No picture",
  pictureInPicture: "Picture in picture",
  fullScreen: "Full screen",
  leaveFullScreen: "Leave full screen",
  position: "Position",
  positionValue: "{position} of {duration}",

  connecting: "Connecting…",
  connectingHint: "",
  waiting: "Waiting for the stream",
  waitingHint: "It starts here by itself as soon as the host goes live.",
  backstage: "Starting soon",
  backstageHint: "It starts here by itself.",
  backstagePaused: "Press play, and it starts here by itself.",
  startsIn: "Starts in",
  waitingPeople: "{count} people are waiting",
  waitingOne: "1 person is waiting",
  away: "Paused",
  awayHint: "The host is away for a moment. It goes on here by itself.",
  reconnecting: "Reconnecting…",
  reconnectingHint: "The connection was lost. Hold on, this mends itself.",
  ended: "The stream has ended",
  endedHint: "Should the host come back, it goes on here.",
  recorded: "Watch what was recorded of it.",
  watchRecording: "Watch the recording",
  recordingPart: "Part {number}",
  soundOnly: "Sound only",
  tryAgain: "Try again",
  tryNow: "Try now",

  refused: "This stream is not open to everybody",
  tokenNeeded: "You need an invitation to watch it.",
  tokenRefused: "Your invitation is no longer valid. Ask for a new one.",
  linkRevoked: "The host has revoked the link. Ask for a new one.",
  banned: "The host has removed you from it.",
  removed: "The host has removed you from it.",
  notPermitted: "Your invitation is for another stream.",
  failed: "This stream cannot be played",
  noAddress: "The address of the stream is missing, or is none.",
  unsupported: "This browser cannot play live video.",

  troubleServer: "The server cannot be reached",
  troubleServerHint: "Check your connection. It goes on here by itself.",
  troubleBusy: "The server is busy",
  troubleBusyHint: "It takes nobody in for the moment. It is asked again by itself.",
  troubleBlocked: "No media comes through",
  troubleBlockedHint: "Your network seems to block video calls. Try another one.",
  troubleNothing: "Nothing arrives",
  troubleNothingHint: "You are connected, but neither picture nor sound comes. It is tried again by itself.",
  troubleWeak: "Your connection is too slow",
  troubleWeakHint: "The picture does not come through whole. Try another network.",
  weakHigh: "Your connection is too slow for the high picture: choose Auto.",
  weakPicture: "Your connection is slow: sound only for the moment.",
  weakSize: "Your connection is slow: a smaller picture.",
};

/** @typedef {Record<keyof typeof STRINGS, string>} Strings */

/**
 * @param {string} text
 * @param {Record<string, string | number>} values by their names in it
 */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}
