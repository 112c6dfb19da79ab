/// Why a request about recordings was refused.
package enum RecordingRefusal: Error, Equatable, Sendable {
    /// This server has no data directory, or decodes nothing.
    case unavailable
    /// The server is about to stop, most likely to be restarted.
    case stopping
    case notLive
    case diskFull
    /// The disk failed for another reason than its space.
    case storage
    /// As many streams are recorded as permitted.
    case overloaded
    case unknownRecording
    /// Only a recording that has ended can be deleted, or played by HLS.
    case underWay
    /// The file is no fragmented MP4, which HLS requires.
    case notFragmented
    /// Too many recordings wait to be indexed for playback.
    case busy
}
