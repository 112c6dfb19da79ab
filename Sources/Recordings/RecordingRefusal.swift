/// Why something that was asked of recordings was not done.
package enum RecordingRefusal: Error, Equatable, Sendable {
    /// This server keeps nothing on a disk, or decodes nothing.
    case unavailable
    case notLive
    case diskFull
    case storage
    case overloaded
    case unknownRecording
    /// Only what has ended can be removed, or played by HLS.
    case underWay
    /// It is no fragmented MP4, which HLS takes.
    case notFragmented
    /// So many wait to be looked through already.
    case busy
}
