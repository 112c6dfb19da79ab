/// Why there is no clip.
package enum ClipRefusal: Error, Equatable, Sendable {
    /// This server keeps nothing on a disk, decodes nothing, or is to make none.
    case unavailable
    /// The stream's settings say that nobody makes any.
    case off
    case notLive
    /// The last minutes of as many streams as may be are kept already.
    case full
    /// Too little came yet, or nothing for as long as the clip would be.
    case nothingThere
    /// One clip of a stream is made at a time.
    case underWay
    /// So many were asked for already; in so many seconds the next may be.
    case tooOften(seconds: Int)
    /// As many clips are kept of the stream as may be.
    case tooMany
    /// Clips of other streams are being made.
    case busy
    /// The transcoder has died, or does not answer.
    case lost
    case diskFull
    case storage
}
