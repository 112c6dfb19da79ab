import Base

/// The last segments of one rendition, and the media playlist that lists them: parts in, text and bytes out.
///
/// No I/O and no clock. File names begin with a tag that is unique to each packaging, so caches never mix two of them
/// up.
/// - Source: RFC 8216bis (draft-pantos-hls-rfc8216bis-16) §4.4 (tags), §6.2.5 (server control), §B.1 (low latency).
package struct LivePlaylist: Sendable {
    /// A part of a segment, as it is served.
    package struct Part: Equatable, Sendable {
        package var bytes: [UInt8]
        package var milliseconds: Int
        /// Whether a segment begins here, with a key frame.
        package var startsSegment: Bool
        package var endsSegment: Bool
        /// When its first picture was captured.
        package var date: WallTime

        package init(
            bytes: [UInt8], milliseconds: Int, startsSegment: Bool, endsSegment: Bool, date: WallTime
        ) {
            self.bytes = bytes
            self.milliseconds = milliseconds
            self.startsSegment = startsSegment
            self.endsSegment = endsSegment
            self.date = date
        }
    }

    /// The structure of segments, as playlists announce it.
    package struct Timing: Equatable, Sendable {
        /// The longest part, in milliseconds.
        package var part: Int
        /// The longest segment, in milliseconds.
        package var segment: Int
        /// Parts of every segment but the first.
        package var partsPerSegment: Int

        package init(part: Int, segment: Int, partsPerSegment: Int) {
            self.part = part
            self.segment = segment
            self.partsPerSegment = partsPerSegment
        }
    }

    /// In bits per second.
    package struct Bitrates: Equatable, Sendable {
        /// Of the segment with the highest rate.
        package var peak: Int
        /// Nil if no encoder aims at a rate, as for passed-on pictures; the measured rate is used then.
        package var average: Int?

        package init(peak: Int, average: Int?) {
            self.peak = peak
            self.average = average
        }
    }

    private struct Initialization {
        /// The tag that its name begins with.
        let tag: String
        let number: Int
        let bytes: [UInt8]
    }

    private struct Segment {
        /// The tag that its name and those of its parts begin with.
        let tag: String
        let sequenceNumber: Int
        /// The number of its initialization segment.
        let initialization: Int
        let isDiscontinuous: Bool
        let date: WallTime
        var parts: [Part] = []
        var isComplete = false

        var name: String { MediaFileName.segment(sequenceNumber).text(tag) }
        var milliseconds: Int { parts.reduce(0) { $0 + $1.milliseconds } }
        var byteCount: Int { parts.reduce(0) { $0 + $1.bytes.count } }
    }

    /// Complete segments in memory: 20 s, by which players may lag behind.
    package static let segmentLimit = 10
    /// Bytes of all parts in memory, however few segments that leaves.
    package static let byteLimit = 32 << 20
    /// Segments at the end of the playlist that list their parts: three target durations (§4.4.4.9).
    private static let segmentsWithParts = 3

    private let tag: String
    private let timing: Timing
    /// The oldest first; the last one may be incomplete.
    private var segments: [Segment] = []
    private var initializations: [Initialization] = []
    /// Older segments, which are on the disk alone.
    private var archive = SegmentArchive()
    /// Sequence numbers of segments in memory that are also on the disk.
    private var stored: Set<Int> = []
    /// Sequence number of the first segment that `takeFinished` has not returned yet.
    private var nextToStore = 0
    private var discontinuitySequence = 0
    /// Of the segment that begins next.
    package private(set) var nextSequenceNumber = 0
    /// Bytes of all segments in memory.
    package private(set) var byteCount = 0
    /// Of both tracks, in the syntax of RFC 6381; nil before `begin`.
    package private(set) var codecs: String?
    /// In pixels.
    package private(set) var resolution = (width: 0, height: 0)
    /// Nil for a variable rate.
    package private(set) var framesPerSecond: Int?
    /// The rates that the encoder aims at.
    private var meant = Bitrates(peak: 0, average: nil)
    /// Rate of the richest segment so far, in bits per second.
    private var peakBitrate = 0
    package private(set) var hasEnded = false

    /// - Parameter tag: the start of all names, of letters and digits; unique to each packaging.
    package init(tag: String, timing: Timing) {
        self.tag = tag
        self.timing = timing
    }

    /// Continues another rendition's playlist, so that players that change to this new rendition find the segments that
    /// they have.
    /// - Parameters:
    ///   - tag: as for a new playlist.
    ///   - other: a rendition with the same tracks.
    package init(tag: String, continuing other: LivePlaylist) {
        self.init(tag: tag, timing: other.timing)
        segments = other.segments.filter(\.isComplete)
        initializations = other.initializations
        discontinuitySequence = other.discontinuitySequence
        nextSequenceNumber = segments.last.map { $0.sequenceNumber + 1 } ?? other.nextSequenceNumber
        byteCount = segments.reduce(0) { $0 + $1.byteCount }
    }

    /// Continues another playlist's numbers without its segments, because the pictures have another codec.
    /// - Parameter isInterrupted: whether nothing was made for a while instead, which is a discontinuity.
    package init(tag: String, countingOnFrom other: LivePlaylist, isInterrupted: Bool = false) {
        self.init(tag: tag, timing: other.timing)
        discontinuitySequence = other.discontinuitySequence + other.segments.count(where: \.isDiscontinuous)
        if isInterrupted { discontinuitySequence += 1 }
        nextSequenceNumber = other.nextSequenceNumber
    }

    // MARK: What is made

    /// Starts a new initialization segment; if there were segments before, what follows is discontinuous.
    /// - Parameters:
    ///   - width: in pixels, like the height; 0 for audio alone.
    ///   - framesPerSecond: nil for a variable rate.
    ///   - meant: the rates that the encoder aims at; actual rates may differ.
    package mutating func begin(
        initialization: [UInt8], codecs: String, width: Int, height: Int, framesPerSecond: Int?,
        meant: Bitrates
    ) {
        completeSegment()
        let number = (initializations.last?.number ?? -1) + 1
        initializations.append(Initialization(tag: tag, number: number, bytes: initialization))
        self.codecs = codecs
        resolution = (width, height)
        self.framesPerSecond = framesPerSecond
        self.meant = meant
        trim()
    }

    /// Adds the next part; a part that has no segment to belong to is dropped.
    package mutating func append(_ part: Part) {
        guard !hasEnded, let initialization = initializations.last?.number else { return }
        if part.startsSegment || segments.last?.isComplete ?? true
            || segments.last?.initialization != initialization
        {
            guard part.startsSegment else { return }
            completeSegment()
            let isDiscontinuous = segments.last.map { $0.initialization != initialization } ?? false
            segments.append(
                Segment(
                    tag: tag, sequenceNumber: nextSequenceNumber, initialization: initialization,
                    isDiscontinuous: isDiscontinuous, date: part.date))
            nextSequenceNumber += 1
        }
        let index = segments.count - 1
        segments[index].parts.append(part)
        byteCount += part.bytes.count
        if part.endsSegment { completeSegment() }
        trim()
    }

    /// Completes the playlist; no further parts are accepted.
    package mutating func end() {
        completeSegment()
        hasEnded = true
    }

    private mutating func completeSegment() {
        guard let last = segments.last, !last.isComplete else { return }
        segments[segments.count - 1].isComplete = true
        guard last.milliseconds >= timing.part else { return }
        peakBitrate = max(peakBitrate, last.byteCount * 8_000 / last.milliseconds)
    }

    private mutating func trim() {
        while segments.count > 1, segments.count > Self.segmentLimit + 1 || byteCount > Self.byteLimit {
            removeFirst()
        }
        archive.trim(besides: segments.reduce(0) { $0 + $1.milliseconds })
        let needed =
            archive.entries.first?.initialization ?? segments.first?.initialization
            ?? initializations.last?.number ?? 0
        initializations.removeAll { $0.number < needed }
    }

    private mutating func removeFirst() {
        let removed = segments.removeFirst()
        byteCount -= removed.byteCount
        if removed.isDiscontinuous { discontinuitySequence += 1 }
        guard stored.remove(removed.sequenceNumber) != nil else { return archive.clear() }
        archive.append(
            SegmentArchive.Entry(
                sequenceNumber: removed.sequenceNumber, initialization: removed.initialization,
                isDiscontinuous: removed.isDiscontinuous, milliseconds: removed.milliseconds,
                name: removed.name, lines: lines(of: removed)))
    }

    // MARK: What is on the disk

    /// A complete segment, to be written to the disk.
    package struct Finished: Equatable, Sendable {
        package let name: String
        package let bytes: [UInt8]
    }

    /// How far `text(reachesBack:)` reaches back at most, in milliseconds; 0 for no further than memory.
    package var window: Int {
        get { archive.window }
        set {
            archive.window = newValue
            trim()
        }
    }

    /// Segments completed since the last call; empty if the window is 0.
    package mutating func takeFinished() -> [Finished] {
        guard window > 0 else { return [] }
        let finished = segments.filter { $0.isComplete && $0.tag == tag && $0.sequenceNumber >= nextToStore }
        nextToStore = finished.last.map { $0.sequenceNumber + 1 } ?? nextToStore
        return finished.map { Finished(name: $0.name, bytes: $0.parts.flatMap(\.bytes)) }
    }

    /// Records that a segment is on the disk.
    ///
    /// A segment that is not on the disk when it leaves memory ends the reach of everything before it.
    /// - Returns: false if it has left memory already, so that its file is useless.
    package mutating func noteStored(_ name: String) -> Bool {
        guard let segment = segments.first(where: { $0.name == name }) else { return false }
        stored.insert(segment.sequenceNumber)
        return true
    }

    /// Files that are in no playlist any more, to be deleted.
    package mutating func takeForgotten() -> [String] { archive.takeForgotten() }

    /// All files on the disk, to be deleted because nothing refers to the playlist any more.
    package mutating func forgetAll() -> [String] {
        archive.clear()
        let held = segments.filter { stored.contains($0.sequenceNumber) }.map(\.name)
        stored = []
        return archive.takeForgotten() + held
    }

    /// Removes from memory what is also on the disk, once the playlist has ended.
    package mutating func releaseStored() {
        guard hasEnded, window > 0 else { return }
        while let first = segments.first, stored.contains(first.sequenceNumber) { removeFirst() }
        trim()
    }

    /// How far viewers can go back, in milliseconds.
    package var reach: Int { archive.milliseconds + segments.reduce(0) { $0 + $1.milliseconds } }

    // MARK: Where it stands

    /// Whether a player without support for parts could start.
    package var hasCompleteSegment: Bool { segments.contains(where: \.isComplete) }

    /// Whether the playlist contains a segment or part already, or will soon.
    ///
    /// A part beyond the last one of a segment means the first one of the next segment (RFC 8216bis §6.2.5.2).
    package func standing(of position: PlaylistQuery.Position) -> Standing {
        let next =
            segments.last.map { $0.isComplete ? $0.sequenceNumber + 1 : $0.sequenceNumber }
            ?? nextSequenceNumber
        if hasEnded { return .there }
        guard position.sequenceNumber <= next + 1 else { return .tooFar }
        guard let part = position.part else { return position.sequenceNumber < next ? .there : .awaited }
        guard part <= 2 * timing.partsPerSegment else { return .tooFar }
        let segment = segments.first { $0.sequenceNumber == position.sequenceNumber }
        if let segment, segment.isComplete, part >= segment.parts.count {
            return standing(
                of: PlaylistQuery.Position(sequenceNumber: position.sequenceNumber + 1, part: 0))
        }
        if position.sequenceNumber < next { return .there }
        guard position.sequenceNumber == next, let segment else { return .awaited }
        return part < segment.parts.count ? .there : .awaited
    }

    /// Whether a file or position is available.
    package enum Standing: Equatable, Sendable {
        case there
        /// Available under its name in the files that were written.
        case onDisk
        /// Available soon.
        case awaited
        /// Too far in the future to wait for.
        case tooFar
        /// Not available any more, or never.
        case nowhere
    }

    // MARK: Files

    /// Whether a file name belongs to this playlist.
    package func names(_ file: String) -> Bool { tagged(file) != nil }

    /// Parses a file name of this playlist, or of one that it continues.
    private func tagged(_ name: String) -> (tag: String, file: MediaFileName)? {
        if let file = MediaFileName(name, tag: tag) { return (tag, file) }
        let tags = segments.map(\.tag) + initializations.map(\.tag)
        guard let tag = tags.first(where: { name.hasPrefix($0) }), let file = MediaFileName(name, tag: tag)
        else { return nil }
        return (tag, file)
    }

    /// The content of a part, segment or initialization segment.
    /// - Returns: bytes only with `there`.
    package func file(named name: String) -> (standing: Standing, bytes: [UInt8]) {
        guard let (tag, file) = tagged(name) else { return (.nowhere, []) }
        let segment = { [segments] (number: Int) in
            segments.first { $0.sequenceNumber == number && $0.tag == tag }
        }
        switch file {
        case .initialization(let number):
            let found = initializations.first { $0.number == number && $0.tag == tag }
            return found.map { (.there, $0.bytes) } ?? (.nowhere, [])
        case .segment(let number):
            if let segment = segment(number), segment.isComplete {
                return (.there, segment.parts.flatMap(\.bytes))
            }
            return (tag == self.tag && archive.contains(number) ? .onDisk : .nowhere, [])
        case .part(let number, let index):
            if let segment = segment(number), segment.parts.indices.contains(index) {
                return (.there, segment.parts[index].bytes)
            }
            // Segments of a continued playlist are complete, so none of their parts is still to come.
            guard tag == self.tag else { return (.nowhere, []) }
            return (file == hinted ? .awaited : isLater(number, index) ? .tooFar : .nowhere, [])
        }
    }

    private func isLater(_ number: Int, _ index: Int) -> Bool {
        guard !hasEnded, case .part(let nextNumber, let nextIndex) = hinted else { return false }
        return (number, index) > (nextNumber, nextIndex)
    }

    /// The next part to come; nil if the playlist has ended.
    private var hinted: MediaFileName? {
        guard !hasEnded else { return nil }
        guard let last = segments.last, !last.isComplete else { return .part(nextSequenceNumber, 0) }
        return .part(last.sequenceNumber, last.parts.count)
    }

    // MARK: Text

    /// The position of a playlist, as those of the stream's other renditions report it.
    /// - Source: RFC 8216bis §4.4.5.4.
    package struct Report: Equatable, Sendable {
        /// Of the media playlist, relative to the one that contains the report.
        package var uri: String
        fileprivate var sequenceNumber: Int
        fileprivate var part: Int
    }

    /// Nil without segments, and after the end.
    /// - Parameter uri: of the media playlist.
    package func report(uri: String) -> Report? {
        guard !hasEnded, let last = segments.last else { return nil }
        return Report(uri: uri, sequenceNumber: last.sequenceNumber, part: last.parts.count - 1)
    }

    /// The media playlist.
    /// - Parameters:
    ///   - skips: whether the player has the older segments already.
    ///   - reachesBack: whether it begins with segments on the disk.
    ///   - reports: positions of the other renditions that are being made.
    package func text(skips: Bool = false, reachesBack: Bool = false, reports: [Report] = []) -> String {
        let older = reachesBack ? archive.entries : []
        var lines = header(with: older)
        let skipped = skips ? skippable(with: older) : 0
        if skipped > 0 { lines.append("#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)") }
        var initialization: Int?
        func enter(_ number: Int, isDiscontinuous: Bool) {
            if isDiscontinuous { lines.append("#EXT-X-DISCONTINUITY") }
            guard initialization != number else { return }
            initialization = number
            let tag = initializations.first { $0.number == number }?.tag ?? tag
            lines.append("#EXT-X-MAP:URI=\"\(MediaFileName.initialization(number).text(tag))\"")
        }
        for entry in older.dropFirst(skipped) {
            enter(entry.initialization, isDiscontinuous: entry.isDiscontinuous)
            lines += entry.lines
        }
        let firstWithParts = segments.count - Self.segmentsWithParts
        for (index, segment) in segments.enumerated() where index + older.count >= skipped {
            enter(segment.initialization, isDiscontinuous: segment.isDiscontinuous)
            lines += self.lines(of: segment, withParts: index >= firstWithParts || !segment.isComplete)
        }
        if hasEnded {
            lines.append("#EXT-X-ENDLIST")
        } else if let hinted, let last = initializations.last, last.number == initialization, last.tag == tag
        {
            lines.append("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(hinted.text(tag))\"")
        }
        if !hasEnded {
            lines += reports.map {
                "#EXT-X-RENDITION-REPORT:URI=\"\($0.uri)\",LAST-MSN=\($0.sequenceNumber),LAST-PART=\($0.part)"
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func header(with older: [SegmentArchive.Entry]) -> [String] {
        let target = (timing.segment + 999) / 1_000
        let first =
            older.first?.sequenceNumber ?? segments.first?.sequenceNumber ?? nextSequenceNumber
        return [
            "#EXTM3U", "#EXT-X-VERSION:9", "#EXT-X-TARGETDURATION:\(target)",
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=\(6 * target).0,"
                + "PART-HOLD-BACK=\(Self.seconds(3 * timing.part))",
            "#EXT-X-PART-INF:PART-TARGET=\(Self.seconds(timing.part))",
            "#EXT-X-MEDIA-SEQUENCE:\(first)",
            "#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuitySequence - older.count(where: \.isDiscontinuous))",
        ]
    }

    private func lines(of segment: Segment, withParts: Bool = false) -> [String] {
        var lines = ["#EXT-X-PROGRAM-DATE-TIME:\(segment.date.text)"]
        if withParts { lines += parts(of: segment) }
        guard segment.isComplete else { return lines }
        return lines + ["#EXTINF:\(Self.seconds(segment.milliseconds)),", segment.name]
    }

    private func parts(of segment: Segment) -> [String] {
        segment.parts.enumerated().map { index, part in
            let name = MediaFileName.part(segment.sequenceNumber, index).text(segment.tag)
            let mark = part.startsSegment ? ",INDEPENDENT=YES" : ""
            return "#EXT-X-PART:DURATION=\(Self.seconds(part.milliseconds)),URI=\"\(name)\"\(mark)"
        }
    }

    /// Segments that are more than six target durations before the end (§6.2.5.1).
    private func skippable(with older: [SegmentArchive.Entry]) -> Int {
        let boundary = 6 * ((timing.segment + 999) / 1_000) * 1_000
        let complete = older.map(\.milliseconds) + segments.filter(\.isComplete).map(\.milliseconds)
        let current = segments.last.map { $0.isComplete ? 0 : $0.milliseconds } ?? 0
        var behind = complete.reduce(current, +)
        var count = 0
        for milliseconds in complete {
            behind -= milliseconds
            guard behind >= boundary else { break }
            count += 1
        }
        return count
    }

    static func seconds(_ milliseconds: Int) -> String {
        let rest = String(milliseconds % 1_000 + 1_000).dropFirst()
        return "\(milliseconds / 1_000).\(rest)"
    }

    /// The rendition's entry in the multivariant playlist; nil before `begin`.
    /// - Parameter uri: of the media playlist.
    package func variant(uri: String) -> MultivariantPlaylist.Variant? {
        guard let codecs else { return nil }
        let hasPictures = resolution.width > 0
        return MultivariantPlaylist.Variant(
            uri: uri, bandwidth: max(meant.peak, peakBitrate),
            averageBandwidth: meant.average ?? averageBitrate, codecs: codecs,
            resolution: hasPictures
                ? MultivariantPlaylist.Resolution(width: resolution.width, height: resolution.height) : nil,
            framesPerSecond: framesPerSecond)
    }

    /// In bits per second; nil before a segment is complete.
    private var averageBitrate: Int? {
        let complete = segments.filter(\.isComplete)
        let milliseconds = complete.reduce(0) { $0 + $1.milliseconds }
        guard milliseconds >= timing.part else { return nil }
        return complete.reduce(0) { $0 + $1.byteCount } * 8_000 / milliseconds
    }
}
