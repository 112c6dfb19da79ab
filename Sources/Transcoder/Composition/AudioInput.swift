import Base
import Codecs

/// Turns Opus packets into stereo and makes up for those that are missing; a library, or a test's stand-in.
protocol SoundDecoder: AnyObject {
    /// The sound of a packet, left and right in turn at 48 kHz.
    func decode(_ packet: [UInt8]) throws(CodecError) -> [Float]
    /// The sound of the lost packet before `packet`, from what that repeats of it.
    func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float]
    /// A guess at sound that is missing; `frames` in samples of a channel.
    func conceal(frames: Int) throws(CodecError) -> [Float]
}

extension OpusDecoder: SoundDecoder {}

/// One speaker's voice: packets in as they come, 20 ms of sound out at every call.
///
/// What to play is a matter of time alone: a packet has its place by its time stamp. What is missing when its time
/// has come is recovered from the packet behind it, or made up, and what comes afterwards is dropped.
/// - Source: RFC 6716 §2.1.7 (in-band error correction), RFC 7587 §4.2 (time stamps).
struct AudioInput {
    private struct Packet {
        let timestamp: Int64
        let payload: [UInt8]
        let frames: Int
    }

    /// Samples of a channel in a call's sound.
    static let blockFrames = 960
    private static let channels = OpusDecoder.channels
    /// 2 s of packets of 20 ms.
    private static let packetLimit = 100
    /// Sound is made up for no longer.
    private static let concealmentLimit = 4_800
    /// More than this at once is a jump, not a drift.
    private static let jump: Int64 = 24_000
    /// Samples that a block may be longer or shorter, to follow the clock.
    private static let stretch: Int64 = 240
    private static let tolerance: Int64 = 240

    private let decoder: any SoundDecoder
    private var packets: [Packet] = []
    /// Another one means that time stamps begin anew.
    private var epoch: UInt32 = 0
    private(set) var clock = MediaClock(rate: 48_000)
    /// Decoded sound, from the time stamp `playhead` on.
    private var sound: [Float] = []
    private var playhead: Int64?
    /// Made up since the last packet.
    private var concealed = 0
    private(set) var statistics = Statistics()

    struct Statistics: Equatable {
        var packets: UInt64 = 0
        var late: UInt64 = 0
        var recovered: UInt64 = 0
        /// Samples of a channel that were made up, or silent for want of packets.
        var concealedFrames: UInt64 = 0
        var overflows: UInt64 = 0
        var undecodable: UInt64 = 0
    }

    init(decoder: any SoundDecoder) {
        self.decoder = decoder
    }

    /// Takes a packet in.
    /// - Parameter frames: how long it is, in samples of a channel.
    /// - Returns: how long after its capture it came, in nanoseconds; nil if it is of no use.
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

    private var soundEnd: Int64? { playhead.map { $0 + Int64(sound.count / Self.channels) } }

    /// The sound that was captured at `time` and the 20 ms after; nil if there is none.
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

    /// Makes sure that so much sound is there, from the playhead on.
    private mutating func fill(frames: Int) {
        // Each turn adds sound, or takes a packet away.
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
                // Its time has not come yet.
                conceal(min(Int(gap), frames - sound.count / Self.channels))
            } else {
                bridge(Int(gap), to: first)
            }
        }
    }

    private mutating func append(_ packet: Packet, from skipped: Int) {
        guard let decoded = try? decoder.decode(packet.payload) else {
            statistics.undecodable &+= 1
            return
        }
        concealed = 0
        let start = min(skipped * Self.channels, decoded.count)
        sound.append(contentsOf: decoded[start...])
    }

    /// Fills the gap before `packet`, whose end the packet itself may tell.
    private mutating func bridge(_ gap: Int, to packet: Packet) {
        if gap > packet.frames { conceal(gap - packet.frames) }
        let rest = min(gap, packet.frames)
        guard rest.isMultiple(of: 120), concealed < Self.concealmentLimit,
            let recovered = try? decoder.recover(from: packet.payload, frames: rest)
        else { return conceal(rest) }
        statistics.recovered &+= 1
        sound.append(contentsOf: recovered)
    }

    /// Makes up sound for a while, and is silent then.
    private mutating func conceal(_ frames: Int) {
        guard frames > 0 else { return }
        statistics.concealedFrames &+= UInt64(frames)
        // The library makes up multiples of 2.5 ms.
        let rounded = min((frames + 119) / 120 * 120, OpusDecoder.maximumFrames)
        if concealed < Self.concealmentLimit, let made = try? decoder.conceal(frames: rounded) {
            concealed += frames
            sound.append(contentsOf: made.prefix(frames * Self.channels))
        } else {
            sound.append(contentsOf: repeatElement(0, count: frames * Self.channels))
        }
    }

    /// Plays sound a little faster or slower.
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
