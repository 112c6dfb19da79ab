import ClientPeer

/// The networks that a viewer watches over, and how it reports what arrives.
struct NetworkOptions: Equatable, Sendable {
    /// How a viewer reports to the server what arrives.
    enum Feedback: String, CaseIterable, Sendable {
        /// The arrival time of each packet, as browsers do.
        case transportWide = "transport-cc"
        /// Receiver reports alone, as simple players do.
        case reports

        /// The feedback in the offer.
        var offered: ClientOffer.Feedback { self == .transportWide ? .transportWide : .receiverEstimate }
    }

    /// The longest list of profiles.
    static let mostProfiles = 100

    /// In the order in which they are watched over.
    var profiles = NetworkProfile.all.filter { $0.name == "rfc8867-5.1" }
    var feedback = Feedback.transportWide
    /// Whether the tool publishes the stream itself; the layers are known only then.
    var isPublishing = true
}

extension OptionDefinition {
    static let networkOptions = [
        OptionDefinition(
            "--profile", "NAMES", .audience, for: [.network],
            "networks to watch over, such as lte,train, or all (default rfc8867-5.1): "
                + NetworkProfile.all.map(\.name).joined(separator: ", ")
        ) { options, text throws(UsageError) in
            guard text != "all" else { return options.network.profiles = NetworkProfile.all }
            options.network.profiles = []
            let names = text.split(separator: ",")
            // The same network may come twice, but a run has an end.
            guard names.count <= NetworkOptions.mostProfiles else {
                throw UsageError(
                    "--profile takes at most \(NetworkOptions.mostProfiles) names, not \(names.count)")
            }
            for name in names {
                guard let profile = NetworkProfile.named(String(name)) else {
                    throw UsageError(
                        "--profile must be all, or names of these, not \"\(name)\": "
                            + NetworkProfile.all.map(\.name).joined(separator: ", "))
                }
                options.network.profiles.append(profile)
            }
            guard !options.network.profiles.isEmpty else {
                throw UsageError("--profile needs at least one name")
            }
        },
        OptionDefinition(
            "--reports-only", nil, .audience, for: [.network],
            "send only receiver reports, as simple players do, instead of feedback for each packet"
        ) { options, _ in options.network.feedback = .reports },
        OptionDefinition(
            "--no-publisher", nil, .target, for: [.network],
            "watch a stream that is already published; the best layer is then unknown"
        ) { options, _ in options.network.isPublishing = false },
    ]
}
