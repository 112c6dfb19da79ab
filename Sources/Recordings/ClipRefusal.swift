/// Why a clip is not made.
package enum ClipRefusal: Error, Equatable, Sendable {
    /// This server has no data directory, decodes nothing, or has clips turned off.
    case unavailable
    /// The server is about to stop, most likely to be restarted.
    case stopping
    /// The stream's settings do not permit clips.
    case off
    case notLive
    /// The last minutes of as many streams as permitted are kept already.
    case full
    /// Nothing was received in the requested time, or too little yet.
    case nothingThere
    /// Another clip of the stream is being made; one at a time is.
    case underWay
    /// The stream's rate limit is reached; the next clip is permitted in so many seconds.
    case tooOften(seconds: Int)
    /// As many clips of the stream are kept as permitted.
    case tooMany
    /// As many clips of other streams are being made as permitted.
    case busy
    /// The transcoder has died or does not answer.
    case lost
    case diskFull
    case storage
}
