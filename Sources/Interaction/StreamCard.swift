import Base

/// What a host points to while talking about it, such as a product or a page; one at a time.
package struct StreamCard: Equatable, Sendable, Codable {
    /// Cleaned like a comment.
    package let title: String
    /// An https address.
    package let link: String
    /// `https://…`, or a path on this server; nil for none.
    package let picture: String?
    /// Data of the app, which is not interpreted here; nil for none.
    package let data: JSON?

    /// A card whose values are checked by `cleaned`.
    package init(title: String, link: String, picture: String?, data: JSON?) {
        self.title = title
        self.link = link
        self.picture = picture
        self.data = data
    }

    /// Most characters of the title.
    package static let titleLength = 100
    /// Most bytes of an address.
    package static let addressLength = 500
    /// Most bytes of the app's data as JSON.
    package static let dataLength = 2_048

    /// The card with its title cleaned like a comment.
    /// - Throws: `.invalid` with the name of the first field that is out of range.
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

/// Checks of addresses that pages load or link to, as a host wrote them.
enum PictureAddress {
    /// Whether it is an https address.
    static func isRemote(_ text: String, length: Int) -> Bool {
        let scheme = "https://"
        return text.hasPrefix(scheme) && text.utf8.count > scheme.utf8.count && isPlain(text, length: length)
    }

    /// Whether it is an https address, or a path on this server.
    static func isSound(_ text: String, length: Int) -> Bool {
        isRemote(text, length: length)
            || text.hasPrefix("/") && !text.hasPrefix("//") && isPlain(text, length: length)
    }

    /// Whether it has no characters that could end it early in a page.
    private static func isPlain(_ text: String, length: Int) -> Bool {
        text.utf8.count <= length
            && text.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && !#""'<>\^`{|}"#.utf8.contains($0)
            }
    }
}
