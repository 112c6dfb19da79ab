import Base

extension StageDetails {
    /// The gate of a stream: its programme requires a token with a certain tier.
    ///
    /// The gate covers the programme alone, and not comments and the like.
    package struct Gate: Equatable, Sendable, Codable {
        /// The tier that opens the gate; tiers have no order.
        package var tier: String
        /// How long a viewer without the tier may watch, in seconds; counted once per viewer and stream.
        package var freeSeconds = 0
        /// An https address where viewers get the tier; nil if none is shown.
        package var unlock: String?

        package init(tier: String, freeSeconds: Int = 0, unlock: String? = nil) {
            self.tier = tier
            self.freeSeconds = freeSeconds
            self.unlock = unlock
        }

        /// Range of `freeSeconds`.
        package static let freeRange = 0...600
        /// Maximum length of `unlock`, in bytes.
        package static let addressLength = 500

        var isValid: Bool {
            Tier.isName(tier) && Self.freeRange.contains(freeSeconds)
                && unlock.map(Self.isAddress) ?? true
        }

        /// Whether pages may link to it: an https address without characters that could end it in markup.
        private static func isAddress(_ text: String) -> Bool {
            let scheme = "https://"
            return text.hasPrefix(scheme) && (scheme.utf8.count + 1...addressLength).contains(text.utf8.count)
                && text.utf8.allSatisfy {
                    (0x21...0x7E).contains($0) && !#""'<>\^`{|}"#.utf8.contains($0)
                }
        }

        /// Whether a sender may pass: by the tier, or by a role that requires their presence.
        /// - Parameters:
        ///   - sender: nil for an anonymous viewer.
        ///   - isOnStage: whether they are the stream's host or a speaker.
        package func admits(_ sender: Stage.Sender?, isOnStage: Bool) -> Bool {
            guard let sender else { return false }
            return isOnStage || sender.authority == .admin || sender.mayModerate
                || sender.tiers.contains(tier)
        }

        /// As the API shows it; requests contain the same members.
        package var json: JSON {
            .object([
                "tier": .string(tier), "freeSeconds": .integer(freeSeconds), "unlock": .text(unlock),
            ])
        }
    }
}
