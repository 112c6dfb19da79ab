/// The hint in a packet on the time between capture and display.
///
/// - Source: webrtc.org/experiments/rtp-hdrext/playout-delay.
package enum PlayoutHint: Equatable, Sendable {
    /// The publisher's extension, if there is one.
    case asPublished
    /// Catching up: show each frame as soon as it is decoded.
    case atOnce
    /// The receiver may smooth jitter again. It must be sent, because Chromium applies the last hint forever.
    case asUsual

    /// Number of packets that revoke the hint to catch up.
    ///
    /// Browsers read only the first packet of each picture. The first picture may span hundreds of packets, so other
    /// pictures must begin within this number, and some of their first packets must arrive.
    static let repetitions: Int64 = 512

    /// A minimum and maximum of 10 ms, each in units of 10 ms.
    ///
    /// With a minimum of 0 libwebrtc assigns pictures no render time, and Firefox then shows only the first: it
    /// treats a picture with the same time as the one before as out of order.
    private static let shortestDelay: UInt64 = 1 << 12 | 1
    /// A minimum of 0 and a maximum of 10 s, Chromium's defaults, in units of 10 ms.
    private static let usualDelay: UInt64 = 1_000

    /// The extension's value; nil to keep the publisher's.
    /// - Parameter published: the publisher's extension; nil if the packet has none.
    func delay(replacing published: Range<Int>?) -> UInt64? {
        switch self {
        case .asPublished: nil
        case .atOnce: Self.shortestDelay
        case .asUsual: published == nil ? Self.usualDelay : nil
        }
    }
}
