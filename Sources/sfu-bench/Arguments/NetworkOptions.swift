import ClientPeer

/// Over which networks a viewer watches, and what it tells the server of what comes.
struct NetworkOptions: Equatable, Sendable {
    /// How a viewer tells.
    enum Feedback: String, CaseIterable, Sendable {
        /// Of each packet when it came, as browsers do.
        case transportWide = "transport-cc"
        /// By receiver reports alone, as simple players do.
        case reports

        /// What the offer says.
        var offered: ClientOffer.Feedback { self == .transportWide ? .transportWide : .receiverEstimate }
    }

    var profiles = NetworkProfile.all.filter { $0.name == "rfc8867-5.1" }
    var feedback = Feedback.transportWide
    /// Whether the tool publishes the stream itself.
    var isPublishing = true
}

extension OptionDefinition {
    static let networkOptions = [
        OptionDefinition(
            "--profile", "NAMES", .audience, for: [.network],
            "networks to watch over, like lte,train, or all (default rfc8867-5.1): "
                + NetworkProfile.all.map(\.name).joined(separator: ", ")
        ) { options, text throws(UsageError) in
            guard text != "all" else { return options.network.profiles = NetworkProfile.all }
            options.network.profiles = []
            for name in text.split(separator: ",").prefix(NetworkProfile.all.count) {
                guard let profile = NetworkProfile.named(String(name)) else {
                    throw UsageError(
                        "--profile knows no \"\(name)\", but "
                            + NetworkProfile.all.map(\.name).joined(separator: ", "))
                }
                options.network.profiles.append(profile)
            }
            guard !options.network.profiles.isEmpty else { throw UsageError("--profile wants names") }
        },
        OptionDefinition(
            "--reports-only", nil, .audience, for: [.network],
            "tell what comes by receiver reports alone, as simple players do, and not of each packet"
        ) { options, _ in options.network.feedback = .reports },
        OptionDefinition(
            "--no-publisher", nil, .target, for: [.network],
            "watch a stream that somebody else publishes: then nothing is said of the best layer"
        ) { options, _ in options.network.isPublishing = false },
    ]
}
