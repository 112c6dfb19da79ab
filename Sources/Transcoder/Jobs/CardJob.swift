import Base
import CLinux
import Codecs
import Wire

/// What stands on the card of a stream that has no picture.
package struct CardRequest: Equatable, Sendable {
    /// Decides on the colour.
    package var stream: String
    /// Ends in an ellipsis where it does not fit.
    package var title: String
    /// Below the title.
    package var host: String

    package init(stream: String, title: String, host: String) {
        self.stream = stream
        self.title = title
        self.host = host
    }

    /// The job's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(stream)
        writer.write(title)
        writer.write(host)
        return writer.bytes
    }

    /// - Throws: for what `bytes` does not make.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        stream = try reader.text()
        title = try reader.text()
        host = try reader.text()
    }
}

/// Draws a card, and reports it as a `PreviewPicture`.
final class CardJob: TranscoderJob {
    private static let width = 360
    private static let height = 640
    private static let margin = 24

    init?(_ body: [UInt8], _ environment: JobEnvironment) {
        guard let request = try? CardRequest(body) else { return nil }
        SpareThread.shared.run {
            PreviewPicture.bytes(try? Self.draw(request))
        } then: { card in
            environment.report(card)
            environment.outlet.send(.ended(environment.id))
        }
    }

    func end() {}

    static func draw(_ request: CardRequest) throws -> PreviewPicture {
        let began = clinux_thread_nanoseconds()
        let color = DrawingColor(rgb: color(of: request.stream))
        var card = try Picture(width: width, height: height, luma: color.luma, u: color.u, v: color.v)
        let room = width - 2 * margin
        // Nothing to draw is no failure: a card may have a colour only.
        let title = try? TextMask(request.title, size: 34, maximumWidth: room)
        let host = try? TextMask(request.host, size: 22, maximumWidth: room)
        var place = (height - (title?.height ?? 0) - (host?.height ?? 0)) / 2
        for line in [title, host].compactMap({ $0 }) {
            card.draw(line, x: (width - line.width) / 2, y: place)
            place += line.height + 12
        }
        var picture = try PreviewPicture(of: card)
        picture.cpuNanoseconds = clinux_thread_nanoseconds() - began
        return picture
    }

    /// A colour that white stands out from, the same for the same stream (FNV-1a picks the hue).
    static func color(of stream: String) -> UInt32 {
        var hash: UInt32 = 2_166_136_261
        for byte in stream.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let hue = Double(hash % 360) / 60
        let (low, high) = (56.0, 136.0)
        func channel(_ shift: Double) -> UInt32 {
            let place = (hue + shift).truncatingRemainder(dividingBy: 6)
            let share = min(max(min(place, 4 - place), 0), 1)
            return UInt32(high - (high - low) * share)
        }
        return channel(5) << 16 | channel(3) << 8 | channel(1)
    }
}
