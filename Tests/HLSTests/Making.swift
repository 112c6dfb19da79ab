import Base
import HLS

/// Parts as a packager makes them.
struct Making {
    var playlist = LivePlaylist(
        tag: "abc", timing: LivePlaylist.Timing(part: 500, segment: 2_000, partsPerSegment: 4))
    private var count = 0

    private let size: (width: Int, height: Int)

    /// - Parameters: in pixels; 0 for sound alone.
    init(width: Int = 1_280, height: Int = 720) {
        size = (width, height)
        begin()
    }

    mutating func begin() {
        let hasPictures = size.width > 0
        playlist.begin(
            initialization: [9], codecs: hasPictures ? "avc1.64001F,mp4a.40.2" : "mp4a.40.2",
            width: size.width, height: size.height, framesPerSecond: hasPictures ? 30 : nil,
            meant: LivePlaylist.Bitrates(
                peak: hasPictures ? 3_260_400 : 86_000, average: hasPictures ? 2_213_600 : nil))
        count = 0
    }

    /// Makes one part; the fourth ends a segment.
    mutating func part() {
        let place = count % 4
        playlist.append(
            LivePlaylist.Part(
                bytes: [UInt8(truncatingIfNeeded: count)], milliseconds: 500, startsSegment: place == 0,
                endsSegment: place == 3, date: WallTime(milliseconds: 1_700_000_000_000)))
        count += 1
    }

    mutating func parts(_ count: Int) {
        for _ in 0..<count { part() }
    }

    func standing(_ number: Int, _ part: Int? = nil) -> LivePlaylist.Standing {
        playlist.standing(of: PlaylistQuery.Position(sequenceNumber: number, part: part))
    }
}
