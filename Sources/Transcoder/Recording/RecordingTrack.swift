import Base
import Wire

/// The frames of one track that wait to be written, with their times.
struct RecordingTrack {
    /// A frame of video, or a packet of sound.
    struct Sample {
        let bytes: [UInt8]
        let isKeyFrame: Bool
        /// The parameters of a key frame; nil for other frames and for sound.
        let video: Muxer.Video?
        let arrival: MonotonicTime
        /// Duration of a packet of sound; nil for video.
        let duration: Duration?
        /// Time on the input's clock.
        fileprivate let ticks: Int64
        /// The server's time, fixed once the epoch is over; nil before that.
        fileprivate var time: MonotonicTime?
    }

    /// Largest difference between a sample's time and its arrival.
    private static let credible = Duration.seconds(10)

    /// Most frames that wait for the other track; the oldest are dropped.
    private static let limit = 2_000

    private var clock: InputClock
    private var samples: [Sample] = []
    /// Elements of `samples` that have been taken; removed several at a time.
    private var taken = 0

    init(rate: Int64) {
        clock = InputClock(rate: rate)
    }

    /// Whether times are based on the sender's reports.
    var isCertain: Bool { clock.isCertain }
    var isEmpty: Bool { taken == samples.count }
    var first: Sample? { isEmpty ? nil : samples[taken] }

    /// When a sample was captured, on the server's clock.
    func time(of sample: Sample) -> MonotonicTime {
        let time = sample.time ?? clock.time(of: sample.ticks)
        // Bounds the error of wrong sender reports, which could otherwise stretch a minute to hours.
        return min(max(time, sample.arrival - Self.credible), sample.arrival + Self.credible)
    }

    /// Notes that the following packets belong to another source.
    mutating func change() {
        settle()
        clock.forget()
    }

    /// Notes a packet's times, before its frame is complete.
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

    /// Appends a packet of Opus; one that cannot be parsed is dropped.
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

    /// Fixes the times of waiting samples before the clock changes.
    private mutating func settle() {
        for index in samples.indices where samples[index].time == nil {
            samples[index].time = clock.time(of: samples[index].ticks)
        }
    }
}
