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

    /// As many packets take back the wish for haste, should some of them be lost.
    static let repetitions: Int64 = 16

    /// The bounds 0 and 10 s, which are Chromium's own, in units of 10 ms.
    private static let usualDelay: UInt64 = 1_000

    /// The extension's value; nil if it is the publisher's.
    func delay(replacing published: Range<Int>?) -> UInt64? {
        switch self {
        case .asPublished: nil
        case .atOnce: 0
        case .asUsual: published == nil ? Self.usualDelay : nil
        }
    }
}
