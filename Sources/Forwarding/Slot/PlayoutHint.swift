/// What a packet tells its receiver about the time between capture and display.
///
/// - Source: webrtc.org/experiments/rtp-hdrext/playout-delay.
package enum PlayoutHint: Equatable, Sendable {
    /// What the publisher says, if it says anything.
    case asPublished
    /// Catching up: show each frame as soon as it is decoded.
    case atOnce
    /// The receiver may smooth jitter again: Chromium goes by the last hint it got, for ever.
    case asUsual

    /// As many packets take back the wish for haste.
    ///
    /// Browsers go by the first packet of each picture, and the first of these may lie within one of hundreds: others
    /// have to begin among them, and some of those to arrive.
    static let repetitions: Int64 = 512

    /// The bounds 10 and 10 ms, each in units of 10 ms.
    ///
    /// With a least delay of none libwebrtc gives pictures no time to be shown at, and Firefox then shows no more of
    /// them than the first: what has the same time as the one before is out of order there.
    private static let shortestDelay: UInt64 = 1 << 12 | 1
    /// The bounds 0 and 10 s, which are Chromium's own, in units of 10 ms.
    private static let usualDelay: UInt64 = 1_000

    /// The extension's value; nil if it is the publisher's.
    func delay(replacing published: Range<Int>?) -> UInt64? {
        switch self {
        case .asPublished: nil
        case .atOnce: Self.shortestDelay
        case .asUsual: published == nil ? Self.usualDelay : nil
        }
    }
}
