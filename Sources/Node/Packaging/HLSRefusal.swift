/// Why the server does not answer an HLS request with a playlist or file.
package enum HLSRefusal: Error, Equatable, Sendable {
    /// The server makes no HLS.
    case unavailable
    /// The server is about to stop, most likely to be restarted.
    case stopping
    /// The stream's settings disable HLS.
    case off
    /// The stream is not live, and nothing of it is kept.
    case notLive
    /// The stream has no window: its settings, or the server's, keep no segments on disk.
    case noWindow
    /// The server already packages its maximum number of streams.
    case full
    /// Too many requests are waiting already, for this stream or in total.
    case overloaded
    /// The requested part or segment was not made before the request timed out.
    case late
    /// The requested position is further ahead than a request may wait for.
    case tooFarAhead
    /// The file no longer exists, or never will.
    case unknownFile
}
