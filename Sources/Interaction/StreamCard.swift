import Base

/// What a host points to while it is talked about: a product, a page; one at a time.
package struct StreamCard: Equatable, Sendable, Codable {
    /// Cleaned, as comments are.
    package let title: String
    /// An https address.
    package let link: String
    /// `https://…`, or a path on this server; nil for none.
    package let picture: String?
    /// The app's own, of which nothing is known here; nil for none.
    package let data: JSON?

    package init(title: String, link: String, picture: String?, data: JSON?) {
        self.title = title
        self.link = link
        self.picture = picture
        self.data = data
    }

    /// In characters.
    package static let titleLength = 100
    /// In bytes, of an address.
    package static let addressLength = 500
    /// In bytes, of the app's data as JSON.
    package static let dataLength = 2_048

    /// With the title cleaned, as comments are.
    /// - Throws: `.invalid`, naming the first field that is out of its range.
    func cleaned() throws(Interaction.Refusal) -> StreamCard {
        guard let title = try? CommentText(title).text, title.count <= Self.titleLength else {
            throw .invalid("title")
        }
        guard PictureAddress.isRemote(link, length: Self.addressLength) else { throw .invalid("link") }
        if let picture {
            guard PictureAddress.isSound(picture, length: Self.addressLength) else {
                throw .invalid("picture")
            }
        }
        if let data, data.bytes.count > Self.dataLength { throw .invalid("data") }
        return StreamCard(title: title, link: link, picture: picture, data: data)
    }
}

/// Addresses that pages load or link to, as somebody wrote them.
enum PictureAddress {
    /// Whether it is an address of another server, by TLS.
    static func isRemote(_ text: String, length: Int) -> Bool {
        let scheme = "https://"
        return text.hasPrefix(scheme) && text.utf8.count > scheme.utf8.count && isPlain(text, length: length)
    }

    /// Whether it is that, or a path on this server.
    static func isSound(_ text: String, length: Int) -> Bool {
        isRemote(text, length: length)
            || text.hasPrefix("/") && !text.hasPrefix("//") && isPlain(text, length: length)
    }

    /// Without characters that could end it where it is written down.
    private static func isPlain(_ text: String, length: Int) -> Bool {
        text.utf8.count <= length
            && text.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && !#""'<>\^`{|}"#.utf8.contains($0)
            }
    }
}
