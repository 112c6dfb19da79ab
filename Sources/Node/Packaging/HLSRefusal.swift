/// Why there is no HLS, or not what was asked for.
package enum HLSRefusal: Error, Equatable, Sendable {
    /// The server makes none.
    case unavailable
    /// The stream's settings allow none.
    case off
    case notLive
    /// Nobody can go back in it: its settings, or the server's, keep nothing for that.
    case noWindow
    /// It is made of as many streams as the server may.
    case full
    /// So many requests wait already.
    case overloaded
    /// What was waited for did not come in time.
    case late
    /// It is further ahead than anybody waits for.
    case tooFarAhead
    /// It was, or will never be.
    case unknownFile
}
