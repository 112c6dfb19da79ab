import Base
import Codecs
import TestSupport
import Testing

@testable import Transcoder

@Suite struct `A card` {
    @Test func `has its title on a colour of its stream`() throws {
        let card = try CardJob.draw(CardRequest(stream: "s1", title: "Evening talk", host: "Ann"))
        #expect((card.width, card.height) == (360, 640))
        let picture = try Picture(bgra: pixels(card), width: 360, height: 640)
        let ground = DrawingColor(rgb: CardJob.color(of: "s1"))
        let corner = try #require(picture.sample(x: 10, y: 10))
        #expect(abs(Int(corner.luma) - Int(ground.luma)) < 8)
        #expect(abs(Int(corner.u) - Int(ground.u)) < 8)
        // Some of the middle is white.
        let bright = (0..<360).flatMap { x in (280..<360).map { picture.luma(x: x, y: $0) ?? 0 } }
        #expect(bright.count { $0 > 200 } > 200)
        let top = (0..<360).map { picture.luma(x: $0, y: 100) ?? 0 }
        #expect(top.allSatisfy { $0 < 180 })
    }

    private func pixels(_ card: PreviewPicture) throws -> [UInt8] {
        try SampleVideo.ffmpeg(
            ["-f", "webp_pipe", "-i", "-", "-f", "rawvideo", "-pix_fmt", "bgra", "-"], input: card.webP)
    }

    @Test func `has another colour for another stream, always dark enough`() {
        let colors = Set((0..<50).map { CardJob.color(of: "stream-\($0)") })
        #expect(colors.count > 20)
        for color in colors { #expect(DrawingColor(rgb: color).luma < 150) }
    }

    @Test(arguments: ["", "\0", String(repeating: "wide ", count: 80), "שלום 你好 🎉"])
    func `is drawn whatever it says`(_ text: String) throws {
        #expect(try !CardJob.draw(CardRequest(stream: text, title: text, host: text)).webP.isEmpty)
    }
}
