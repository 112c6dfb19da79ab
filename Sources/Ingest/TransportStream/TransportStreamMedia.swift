import Base
import Wire

/// Converts a transport stream into pictures and sound in the form that other protocols share.
package struct TransportStreamMedia: Sendable {
    /// Ticks per second of PES time stamps, and the bits after which they wrap.
    private static let clock: Int64 = 90_000
    private static let timeBits: Int64 = 33

    private var reader = TransportStreamReader()
    private var sound = ADTSReader()
    /// The latest AVC configuration record and AudioSpecificConfig, to detect changes.
    private var videoRecord: [UInt8] = []
    private var audioConfiguration: [UInt8] = []
    /// The latest time stamp, and the same without its wrap every 26 hours.
    private var lastTime: (ticks: UInt64, unwrapped: Int64)?
    /// Where the next frame of sound is expected, in unwrapped ticks; for packets without a time stamp.
    private var nextSound: Int64?

    package init() {}

    /// Processes bytes; packets may be split across calls anywhere.
    /// - Parameter media: receives pictures and sound.
    package mutating func receive(
        _ bytes: Span<UInt8>, at now: MonotonicTime, into media: inout IngestMedia
    ) -> [IngestMedia.Effect] {
        var effects: [IngestMedia.Effect] = []
        for element in reader.read(bytes) {
            switch element {
            case .programme(let programme): effects += begin(programme, at: now, &media)
            case .picture(let packet): effects += show(packet, at: now, &media)
            case .sound(let packet): effects += hear(packet, at: now, &media)
            case .pictureLost: media.losePicture()
            case .soundLost: loseSound()
            }
        }
        if reader.isHopeless {
            effects.append(
                .refuse(.malformed("The data isn't MPEG-TS. Set the encoder's format to mpegts.")))
        }
        return effects
    }

    /// Announces the tracks of the programme, or refuses a codec.
    private func begin(
        _ programme: TransportStreamProgramme, at now: MonotonicTime, _ media: inout IngestMedia
    ) -> [IngestMedia.Effect] {
        if let codec = programme.video?.codec, codec != .h264 { return IngestMedia.refusal(ofVideo: codec) }
        if let codec = programme.audio?.codec, codec != .aac { return IngestMedia.refusal(ofAudio: codec) }
        // The programme table may gain tracks later.
        guard programme.video != nil || programme.audio != nil else { return [] }
        return media.expect(audio: programme.audio != nil, video: programme.video != nil, at: now)
    }

    // MARK: Pictures

    /// Passes on one picture, preceded by its configuration if that has changed.
    private mutating func show(
        _ packet: PESPacket, at now: MonotonicTime, _ media: inout IngestMedia
    ) -> [IngestMedia.Effect] {
        let picture = AnnexBPicture(parsing: packet.payload.span)
        media.measure(video: packet.payload.count, isFrame: true)
        var effects: [IngestMedia.Effect] = []
        if let record = picture.configurationRecord, record != videoRecord {
            videoRecord = record
            effects += media.configure(video: record.span, of: .h264, at: now)
        }
        guard let presentation = packet.presentation, let decoding = packet.decoding else {
            media.losePicture()
            return effects
        }
        let decoded = milliseconds(decoding)
        let shown = milliseconds(presentation)
        let timing = PictureTiming(
            decoded: UInt32(truncatingIfNeeded: decoded), delay: Int32(clamping: shown &- decoded))
        // Encoders with intra refresh mark entry points that are not IDR pictures.
        let isEntry = packet.isRandomAccess && !picture.sequenceParameters.isEmpty
        return effects
            + media.receive(
                picture: picture.units.span, timing, isKeyFrame: picture.isRefresh || isEntry, at: now)
    }

    // MARK: Sound

    /// Passes on the frames of one PES packet, preceded by their configuration if that has changed.
    private mutating func hear(
        _ packet: PESPacket, at now: MonotonicTime, _ media: inout IngestMedia
    ) -> [IngestMedia.Effect] {
        media.measure(audio: packet.payload.count)
        var effects: [IngestMedia.Effect] = []
        var start = packet.presentation.map { ticks(of: $0) }
        guard start != nil || nextSound != nil else { return [] }
        for frame in sound.read(packet.payload) {
            if frame.configuration != audioConfiguration {
                audioConfiguration = frame.configuration
                effects += media.configure(audio: frame.configuration.span, at: now)
            }
            let rate = Int64(frame.sampleRate)
            let offset = Int64(frame.offset) &* Self.clock / rate
            // Without a time stamp the first frame follows the last one, even if it began in the packet before.
            let base = start ?? (nextSound ?? 0) &- offset
            start = base
            let time = base &+ offset
            nextSound = time &+ 1_024 * Self.clock / rate
            let timestamp = UInt32(truncatingIfNeeded: time / 90)
            effects += media.receive(sound: frame.bytes.span, timestamp: timestamp, at: now)
        }
        return effects
    }

    /// Drops the beginning of a frame whose end is lost; it would be heard with the bytes of others.
    private mutating func loseSound() {
        sound = ADTSReader()
        nextSound = nil
    }

    // MARK: Time

    private mutating func milliseconds(_ time: UInt64) -> Int64 { ticks(of: time) / 90 }

    /// Unwraps a time stamp of 33 bits, as the value closest to the latest one.
    private mutating func ticks(of time: UInt64) -> Int64 {
        guard let last = lastTime else {
            let first = Int64(truncatingIfNeeded: time)
            lastTime = (time, first)
            return first
        }
        let span = Int64(1) << Self.timeBits
        var step = Int64(truncatingIfNeeded: time) &- Int64(truncatingIfNeeded: last.ticks)
        if step > span / 2 { step &-= span } else if step < -span / 2 { step &+= span }
        lastTime = (time, last.unwrapped &+ step)
        return last.unwrapped &+ step
    }
}
