import Base
import ClientPeer
import Wire

/// When a viewer had all of a key frame, with which a decoder can begin whatever was lost before.
struct KeyFrameArrivals {
    private struct Frame {
        var places: Set<UInt16> = []
        /// Packets in all; nil until the last one came.
        var count: Int?
        /// In pixels; nil until the first one came, and for what is no key frame.
        var height: Int?
    }

    /// Of VP8, by their time stamps.
    private var frames: [UInt32: Frame] = [:]
    /// In the order in which they became complete; heights are in pixels.
    private(set) var complete: [(time: MonotonicTime, height: Int)] = []

    mutating func receive(_ header: RTPHeader, payload: [UInt8], at now: MonotonicTime) {
        guard let mark = try? SyntheticMark(reading: payload.span) else { return }
        var frame = frames[header.timestamp] ?? Frame()
        frame.places.insert(mark.packetIndex)
        if header.marker { frame.count = Int(mark.packetIndex) + 1 }
        let info = try? VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
        if info?.startsKeyFrame == true { frame.height = info?.resolution.map { Int($0.height) } }
        frames[header.timestamp] = frame
        guard frame.places.count == frame.count else { return }
        frames[header.timestamp] = nil
        if let height = frame.height { complete.append((now, height)) }
    }
}
