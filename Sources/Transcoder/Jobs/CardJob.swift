import Base
import CLinux
import Codecs
import Wire

/// The content of the card for a stream without a picture.
package struct CardRequest: Equatable, Sendable {
    /// The stream's name, from which the color is derived.
    package var stream: String
    /// Ends in an ellipsis if it is too wide.
    package var title: String
    /// The host's name, shown below the title.
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

    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        stream = try reader.text()
        title = try reader.text()
        host = try reader.text()
    }
}

/// Draws a card, and reports it as a `PreviewPicture`.
final class CardJob: TranscoderJob {
    /// Size of the card and its margin, in pixels.
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

    /// Draws a card with title and host, centered.
    static func draw(_ request: CardRequest) throws -> PreviewPicture {
        let began = clinux_thread_nanoseconds()
        let color = DrawingColor(rgb: color(of: request.stream))
        var card = try Picture(width: width, height: height, luma: color.luma, u: color.u, v: color.v)
        let room = width - 2 * margin
        // An empty text cannot be rendered, but a card may consist of its color only.
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

    /// A color that contrasts with white text, always the same for a stream; the hue is an FNV-1a hash of its name.
    static func color(of stream: String) -> UInt32 {
        var hash: UInt32 = 2_166_136_261
        for byte in stream.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let hue = Double(hash % 360) / 60
        // Hue to RGB with fixed saturation and brightness.
        let (low, high) = (56.0, 136.0)
        func channel(_ shift: Double) -> UInt32 {
            let place = (hue + shift).truncatingRemainder(dividingBy: 6)
            let share = min(max(min(place, 4 - place), 0), 1)
            return UInt32(high - (high - low) * share)
        }
        return channel(5) << 16 | channel(3) << 8 | channel(1)
    }
}
