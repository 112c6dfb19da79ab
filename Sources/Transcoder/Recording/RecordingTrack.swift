import Base
import Wire

/// Whole frames of one kind that wait to be written, with their times.
struct RecordingTrack {
    struct Sample {
        let bytes: [UInt8]
        let isKeyFrame: Bool
        /// Of video, where decoders can begin.
        let video: Muxer.Video?
        let arrival: MonotonicTime
        /// Of sound, as the packet says.
        let duration: Duration?
        fileprivate let ticks: Int64
        /// Once its epoch is over.
        fileprivate var time: MonotonicTime?
    }

    /// Nothing is shown so much earlier or later than it came.
    private static let credible = Duration.seconds(10)

    /// So many frames are kept at most while the other track is waited for.
    private static let limit = 2_000

    private var clock: InputClock
    private var samples: [Sample] = []
    /// Taken from the front of `samples`.
    private var taken = 0

    init(rate: Int64) {
        clock = InputClock(rate: rate)
    }

    var isCertain: Bool { clock.isCertain }
    var isEmpty: Bool { taken == samples.count }
    var first: Sample? { isEmpty ? nil : samples[taken] }

    func time(of sample: Sample) -> MonotonicTime {
        let time = sample.time ?? clock.time(of: sample.ticks)
        // Senders may say what they like; no leap of theirs makes hours of a minute.
        return min(max(time, sample.arrival - Self.credible), sample.arrival + Self.credible)
    }

    /// What comes now is from elsewhere.
    mutating func change() {
        settle()
        clock.forget()
    }

    /// Takes notice of a packet's time.
    mutating func note(_ packet: InputPacket) {
        if clock.isNew(packet.epoch) { settle() }
        clock.note(
            packet.timestamp, epoch: packet.epoch, arrival: packet.arrival, captured: packet.captured)
    }

    mutating func append(_ frame: AssembledFrame, video: Muxer.Video?) {
        let ticks = clock.ticks(of: frame.timestamp)
        append(
            Sample(
                bytes: frame.bytes, isKeyFrame: frame.isKeyFrame, video: video, arrival: frame.arrival,
                duration: nil, ticks: ticks))
    }

    mutating func append(_ packet: InputPacket) {
        guard let ticks = try? OpusPayload.duration(packet.payload.span) else { return }
        append(
            Sample(
                bytes: packet.payload, isKeyFrame: true, video: nil, arrival: packet.arrival,
                duration: .nanoseconds(Int64(ticks) * 1_000_000_000 / 48_000),
                ticks: clock.ticks(of: packet.timestamp)))
    }

    mutating func removeFirst() {
        taken += 1
        guard taken > 256 else { return }
        samples.removeFirst(taken)
        taken = 0
    }

    private mutating func append(_ sample: Sample) {
        if samples.count - taken >= Self.limit { removeFirst() }
        samples.append(sample)
    }

    /// The epoch that the waiting samples belong to is over.
    private mutating func settle() {
        for index in samples.indices where samples[index].time == nil {
            samples[index].time = clock.time(of: samples[index].ticks)
        }
    }
}
