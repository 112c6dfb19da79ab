import Base
import Codecs

/// Decodes Opus packets to stereo and conceals lost ones; implemented by libopus, and by stubs in tests.
protocol SoundDecoder: AnyObject {
    /// Decodes a packet to interleaved samples at 48 kHz, left first.
    func decode(_ packet: [UInt8]) throws(CodecError) -> [Float]
    /// Recovers the lost packet before `packet` from the copy inside `packet`.
    /// - Parameter frames: length of the lost packet, in samples per channel.
    func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float]
    /// Conceals missing sound; `frames` in samples per channel.
    func conceal(frames: Int) throws(CodecError) -> [Float]
}

extension OpusDecoder: SoundDecoder {}

/// One speaker's sound: accepts packets as they arrive, and returns 20 ms of sound per call.
///
/// Time alone decides what is played: each packet has its place by its time stamp. A packet missing at its time is
/// recovered from the next one or concealed, and is dropped if it arrives later.
/// - Source: RFC 6716 §2.1.7 (in-band error correction), RFC 7587 §4.2 (time stamps).
struct AudioInput {
    /// A packet that waits for its time.
    private struct Packet {
        let timestamp: Int64
        let payload: [UInt8]
        let frames: Int
    }

    /// Samples per channel in the sound of one call.
    static let blockFrames = 960
    private static let channels = OpusDecoder.channels
    /// Most packets that wait: two seconds of 20 ms each.
    private static let packetLimit = 100
    /// Longest concealment, in samples per channel (100 ms); silence follows.
    private static let concealmentLimit = 4_800
    /// Difference to the clock, in samples, above which the position jumps (500 ms); smaller ones are drift.
    private static let jump: Int64 = 24_000
    /// Most samples by which a block is lengthened or shortened to follow the clock.
    private static let stretch: Int64 = 240
    /// Difference to the clock, in samples (5 ms), that is not corrected.
    private static let tolerance: Int64 = 240

    private let decoder: any SoundDecoder
    /// Ordered by time stamp.
    private var packets: [Packet] = []
    /// The epoch of `InputPacket`; time stamps restart when it changes.
    private var epoch: UInt32 = 0
    private(set) var clock = MediaClock(rate: 48_000)
    /// Decoded sound from the time stamp `playhead` on, interleaved.
    private var sound: [Float] = []
    /// Time stamp of the first sample in `sound`; nil before playback begins.
    private var playhead: Int64?
    /// Samples per channel concealed since the last decoded packet.
    private var concealed = 0
    private(set) var statistics = Statistics()

    /// Counters since the beginning.
    struct Statistics: Equatable {
        var packets: UInt64 = 0
        /// Packets that arrived after their time.
        var late: UInt64 = 0
        /// Gaps filled from the packet behind them.
        var recovered: UInt64 = 0
        /// Samples per channel that were concealed, or silent for lack of packets.
        var concealedFrames: UInt64 = 0
        /// Packets dropped because too many waited.
        var overflows: UInt64 = 0
        /// Packets that the decoder refused.
        var undecodable: UInt64 = 0
    }

    init(decoder: any SoundDecoder) {
        self.decoder = decoder
    }

    /// Queues a packet for its time.
    /// - Parameter frames: its length, in samples per channel.
    /// - Returns: its delay since capture, in nanoseconds; nil for a duplicate.
    mutating func receive(
        _ payload: [UInt8], timestamp: UInt32, frames: Int, captured: MonotonicTime?, epoch: UInt32 = 0,
        at now: MonotonicTime
    ) -> Int64? {
        if self.epoch != epoch {
            self.epoch = epoch
            clock = MediaClock(rate: 48_000)
            packets.removeAll()
            playhead = nil
            sound.removeAll()
        }
        let timestamp = clock.extend(timestamp)
        clock.note(timestamp, captured: captured, arrival: now)
        statistics.packets &+= 1
        let lateness = clock.time(of: timestamp).map { now.nanoseconds(since: $0) }
        if let end = soundEnd, timestamp + Int64(frames) <= end {
            statistics.late &+= 1
            return lateness
        }
        guard !packets.contains(where: { $0.timestamp == timestamp }) else { return nil }
        let place = packets.firstIndex { $0.timestamp > timestamp } ?? packets.endIndex
        packets.insert(Packet(timestamp: timestamp, payload: payload, frames: frames), at: place)
        if packets.count > Self.packetLimit {
            packets.removeFirst()
            statistics.overflows &+= 1
        }
        return lateness
    }

    /// Time stamp of the end of the decoded sound; nil before playback begins.
    private var soundEnd: Int64? { playhead.map { $0 + Int64(sound.count / Self.channels) } }

    /// The 20 ms of sound captured from `time` on; nil if there is none.
    mutating func block(capturedAt time: MonotonicTime) -> [Float]? {
        guard let wanted = clock.timestamp(at: time) else { return nil }
        if playhead == nil {
            guard let first = packets.first, first.timestamp < wanted + Int64(Self.blockFrames) else {
                return nil
            }
            playhead = wanted
        }
        guard let position = playhead else { return nil }
        var shift = wanted - position
        // The difference between the clock and what has been played: jump, ignore, or stretch this block.
        if shift.magnitude > UInt64(Self.jump) {
            sound.removeAll(keepingCapacity: true)
            playhead = wanted
            shift = 0
        }
        if shift.magnitude <= UInt64(Self.tolerance) { shift = 0 }
        shift = min(max(shift, -Self.stretch), Self.stretch)
        let needed = Self.blockFrames + Int(shift)
        fill(frames: needed)
        guard sound.count >= needed * Self.channels else { return nil }
        let taken = Array(sound[..<(needed * Self.channels)])
        sound.removeFirst(needed * Self.channels)
        playhead = (playhead ?? wanted) + Int64(needed)
        return shift == 0 ? taken : Self.resample(taken, to: Self.blockFrames)
    }

    /// Decodes or conceals until `sound` has this many samples per channel.
    private mutating func fill(frames: Int) {
        // Terminates because each iteration either adds sound or removes a packet.
        while sound.count < frames * Self.channels, let end = soundEnd {
            guard let first = packets.first else {
                conceal(frames - sound.count / Self.channels)
                continue
            }
            let gap = first.timestamp - end
            if gap <= 0 {
                packets.removeFirst()
                append(first, from: Int(-gap))
            } else if gap >= Int64(frames - sound.count / Self.channels) {
                // The next packet begins after this block.
                conceal(min(Int(gap), frames - sound.count / Self.channels))
            } else {
                bridge(Int(gap), to: first)
            }
        }
    }

    /// Decodes a packet.
    /// - Parameter skipped: samples per channel at its start that were concealed already.
    private mutating func append(_ packet: Packet, from skipped: Int) {
        guard let decoded = try? decoder.decode(packet.payload) else {
            statistics.undecodable &+= 1
            return
        }
        concealed = 0
        let start = min(skipped * Self.channels, decoded.count)
        sound.append(contentsOf: decoded[start...])
    }

    /// Fills the gap before `packet`: its end from the copy inside `packet`, the rest by concealment.
    private mutating func bridge(_ gap: Int, to packet: Packet) {
        if gap > packet.frames { conceal(gap - packet.frames) }
        let rest = min(gap, packet.frames)
        guard rest.isMultiple(of: 120), concealed < Self.concealmentLimit,
            let recovered = try? decoder.recover(from: packet.payload, frames: rest)
        else { return conceal(rest) }
        statistics.recovered &+= 1
        sound.append(contentsOf: recovered)
    }

    /// Conceals missing sound, up to `concealmentLimit`; silence follows.
    private mutating func conceal(_ frames: Int) {
        guard frames > 0 else { return }
        statistics.concealedFrames &+= UInt64(frames)
        // The library conceals multiples of 2.5 ms.
        let rounded = min((frames + 119) / 120 * 120, OpusDecoder.maximumFrames)
        if concealed < Self.concealmentLimit, let made = try? decoder.conceal(frames: rounded) {
            concealed += frames
            sound.append(contentsOf: made.prefix(frames * Self.channels))
        } else {
            sound.append(contentsOf: repeatElement(0, count: frames * Self.channels))
        }
    }

    /// Resamples a block to another length by linear interpolation, to follow the clock.
    static func resample(_ sound: [Float], to frames: Int) -> [Float] {
        let count = sound.count / channels
        guard count > 1, frames > 1 else { return [Float](repeating: 0, count: frames * channels) }
        let step = Float(count - 1) / Float(frames - 1)
        var result = [Float](repeating: 0, count: frames * channels)
        for index in 0..<frames {
            let position = Float(index) * step
            let left = min(Int(position), count - 2)
            let weight = position - Float(left)
            for channel in 0..<channels {
                let (a, b) = (sound[left * channels + channel], sound[(left + 1) * channels + channel])
                result[index * channels + channel] = a + (b - a) * weight
            }
        }
        return result
    }
}
