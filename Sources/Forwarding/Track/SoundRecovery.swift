import Peer
import Wire

/// Determines which lost audio packets a later one contains.
///
/// A block contains the time when its audio begins, but not its packet's number. The number follows from adjacent
/// packets: where the audio of one ends when that of the other begins, no packet was sent between them. Blocks that
/// are adjacent to no known packet stay unused. After silence that was not sent (DTX), or before another loss, their
/// numbers would be a guess, and a number that was sent to a viewer must never be sent with other audio (RFC 7714
/// §8.1).
///
/// Chromium sends packets of padding between audio packets, to probe its path. They have numbers but no audio, and
/// may be lost as well. Between two packets with adjacent audio there can only be padding. So a block gets the
/// missing number closest to its neighbor, which is its own or that of padding, and never that of other audio.
/// - Source: RFC 2198 §3; RFC 6716 §3.1 (how long a packet lasts); RFC 7587 §3.1.3 (discontinuous transmission).
struct SoundRecovery {
    /// The audio of one packet, in ticks of the RTP clock.
    struct Sound {
        /// The packet's sequence number, extended.
        var index: Int64 = 0
        var start: UInt32 = 0
        var length: UInt32 = 0

        var end: UInt32 { start &+ length }
    }

    /// A block of earlier audio in the packet.
    struct Block {
        var sound = Sound()
        /// Its place in the payload.
        var range = 0..<0
        /// Whether its packet was lost and has a known number.
        fileprivate(set) var isFound = false
    }

    /// Number of packets before the one with the blocks that are looked at; an offset has 14 bits, a third of a
    /// second.
    static let reach: Int64 = 32
    /// Maximum number of blocks; of more, only the latest are used, but browsers send one or two.
    static let maximumBlocks = 8

    private let own: Sound
    /// The packet itself, earlier ones that arrived, and those that were found in it.
    private var known = InlineArray<48, Sound>(repeating: Sound())
    private var knownCount = 0
    /// Earlier packets that arrived without audio: bit 0 for the one directly before.
    private var silent: UInt64 = 0
    private var blocks = InlineArray<8, Block>(repeating: Block())
    /// Number of blocks in use; the oldest comes first.
    private(set) var count = 0

    /// - Parameter own: the audio of the packet that contains the blocks.
    init(in own: Sound) {
        self.own = own
        noteKnown(own)
    }

    /// Notes an earlier packet that has arrived.
    mutating func noteKnown(_ sound: Sound) {
        guard knownCount < known.count else { return }
        known[knownCount] = sound
        knownCount += 1
    }

    /// Notes an earlier packet without audio that has arrived.
    mutating func noteSilent(_ index: Int64) {
        let distance = own.index &- index
        guard (1...Self.reach).contains(distance) else { return }
        silent |= 1 << UInt64(distance - 1)
    }

    private func isSilent(_ index: Int64) -> Bool {
        let distance = own.index &- index
        return (1...Self.reach).contains(distance) && silent >> UInt64(distance - 1) & 1 == 1
    }

    /// Reads the usable blocks: those of the same format, with audio.
    ///
    /// If their times do not ascend, none is used.
    mutating func take(_ red: RedundantPayload, in payload: Span<UInt8>) {
        var cursor = RedundantBlockCursor(red)
        var skipped = red.earlierCount - Self.maximumBlocks
        var last = UInt32.max
        while let block = cursor.next(in: payload) {
            guard block.payloadType == red.payloadType else { continue }
            guard block.offset > 0, block.offset < last else { return count = 0 }
            last = block.offset
            skipped -= 1
            guard skipped < 0, count < blocks.count,
                let length = try? OpusPayload.duration(payload.extracting(block.range))
            else { continue }
            let sound = Sound(
                start: own.start &- block.offset, length: UInt32(truncatingIfNeeded: length))
            blocks[count] = Block(sound: sound, range: block.range)
            count += 1
        }
    }

    /// Assigns numbers to blocks of missing packets; each one that is found helps to find others.
    mutating func resolve(isMissing: (Int64) -> Bool) {
        var goesOn = true
        while goesOn {
            goesOn = false
            for place in 0..<count where !blocks[place].isFound {
                guard let index = number(of: blocks[place].sound), isMissing(index) else { continue }
                blocks[place].sound.index = index
                blocks[place].isFound = true
                noteKnown(blocks[place].sound)
                goesOn = true
            }
        }
    }

    /// A block by its index; nil for one without a known number.
    func found(_ place: Int) -> Block? {
        guard place >= 0, place < count, blocks[place].isFound else { return nil }
        return blocks[place]
    }

    /// The number of the packet with this audio; nil if its neighbors do not determine it, or contradict each other.
    private func number(of sound: Sound) -> Int64? {
        var before: Int64?
        var behind: Int64?
        for place in 0..<knownCount {
            let other = known[place]
            if other.start == sound.end {
                let claim = next(to: other.index, by: -1)
                guard behind == nil || behind == claim else { return nil }
                behind = claim
            } else if other.end == sound.start {
                let claim = next(to: other.index, by: 1)
                guard before == nil || before == claim else { return nil }
                before = claim
            }
        }
        if silent == 0, let before, let behind, before != behind { return nil }
        guard let number = behind ?? before, number < own.index, number >= own.index &- Self.reach else {
            return nil
        }
        for place in 0..<knownCount {
            let other = known[place]
            guard other.index != number else { return nil }
            let gap = other.index < number ? sound.start &- other.end : other.start &- sound.end
            guard Int32(bitPattern: gap) >= 0 else { return nil }
        }
        return number
    }

    /// The next number in one direction that is not known to be without audio.
    private func next(to index: Int64, by step: Int64) -> Int64 {
        var number = index &+ step
        while isSilent(number) { number &+= step }
        return number
    }
}

extension TrackLayer {
    /// The lost packets that a RED packet contains; nil if there are none.
    ///
    /// - Parameters:
    ///   - header: the header as received.
    ///   - payload: its payload, from which `red` was parsed.
    func recovery(by header: RTPHeader, _ red: RedundantPayload, in payload: Span<UInt8>) -> SoundRecovery? {
        guard red.earlierCount > 0, let stream, ssrc == header.ssrc,
            let index = stream.index(of: header.sequenceNumber),
            (1...SoundRecovery.reach).contains(where: { stream.isMissing(index &- $0) })
        else { return nil }
        let length = (try? OpusPayload.duration(payload.extracting(red.primary))) ?? 0
        var recovery = SoundRecovery(
            in: .init(index: index, start: header.timestamp, length: UInt32(truncatingIfNeeded: length)))
        recovery.take(red, in: payload)
        guard recovery.count > 0 else { return nil }
        for distance in 1...SoundRecovery.reach {
            noteKnown(index &- distance, in: &recovery)
        }
        recovery.resolve { stream.isMissing($0) }
        return recovery
    }

    /// Adds an earlier packet to the recovery, if it is in the history.
    private func noteKnown(_ index: Int64, in recovery: inout SoundRecovery) {
        guard let range = history.range(of: index) else { return }
        let storage = history.storage
        let bytes = storage.span.extracting(range)
        guard let header = try? RTPHeader(parsing: bytes) else { return }
        guard !header.payloadRange.isEmpty else { return recovery.noteSilent(index) }
        guard let length = try? OpusPayload.duration(bytes.extracting(header.payloadRange)) else { return }
        recovery.noteKnown(
            .init(index: index, start: header.timestamp, length: UInt32(truncatingIfNeeded: length)))
    }
}
