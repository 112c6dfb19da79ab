import Base
import HLS
import Testing

@Suite struct `The playlist of a recording` {
    private static let date = WallTime(milliseconds: 1_700_000_000_000)

    private func part(_ uri: String, _ milliseconds: [Int64]) -> RecordedPlaylist.Part {
        RecordedPlaylist.Part(
            uri: uri, initialization: 0..<1_254,
            segments: milliseconds.enumerated().map { index, length in
                let begin = 1_254 + Int64(index) * 1_000
                return RecordedPlaylist.Segment(bytes: begin..<(begin + 1_000), milliseconds: length)
            }, date: Self.date)
    }

    @Test func `names ranges of its file`() {
        let playlist = RecordedPlaylist([part("abc.mp4", [4_000, 4_033])], isIndependent: true)
        #expect(
            playlist.text == """
                #EXTM3U
                #EXT-X-VERSION:9
                #EXT-X-TARGETDURATION:5
                #EXT-X-PLAYLIST-TYPE:VOD
                #EXT-X-MEDIA-SEQUENCE:0
                #EXT-X-INDEPENDENT-SEGMENTS
                #EXT-X-MAP:URI="abc.mp4",BYTERANGE="1254@0"
                #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:20.000Z
                #EXTINF:4.000,
                #EXT-X-BYTERANGE:1000@1254
                abc.mp4
                #EXTINF:4.033,
                #EXT-X-BYTERANGE:1000@2254
                abc.mp4
                #EXT-X-ENDLIST

                """)
    }

    @Test func `is as RFC 8216bis wants it`() {
        let playlists = [
            RecordedPlaylist([part("a.mp4", [4_000])], isIndependent: true),
            RecordedPlaylist([part("a.mp4", [12_000, 1])], isIndependent: false),
            RecordedPlaylist([part("a.mp4", [4_000, 9]), part("a-2.mp4", [5_000])], isIndependent: true),
        ]
        for playlist in playlists {
            var conformance = PlaylistConformance()
            #expect(conformance.check(playlist.text) == [])
        }
    }

    @Test func `says where another file begins`() {
        let text = RecordedPlaylist(
            [part("a.mp4", [4_000]), part("a-2.mp4", [4_000])], isIndependent: true
        ).text
        #expect(text.contains("a.mp4\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"a-2.mp4\""))
    }
}
