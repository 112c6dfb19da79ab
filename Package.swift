// swift-tools-version: 6.2
import PackageDescription

/// Settings every Swift target shares.
let common: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
/// For where all is built from nothing, as in continuous integration.
///
/// A module at once takes less time to optimize than in batches of its files, but each change would build all of its
/// module again.
let whole: [String] =
    Context.environment["ROSTRUM_WHOLE_MODULES"] == nil
    ? [] : ["-whole-module-optimization", "-num-threads", "2", "-emit-module-separately-wmo"]
/// Optimized in a debug build, too, with all of its checks.
///
/// Tests spend most of their time here, and the server that browsers test would take as much of the machine as they do.
/// For size: for speed the compiler takes half as long again.
let hot: [SwiftSetting] =
    common + [.unsafeFlags(["-Osize", "-assert-config", "Debug"] + whole, .when(configuration: .debug))]
/// Any unsafe construct must be spelled `unsafe`, with a reason where that is not plain.
let strict: [SwiftSetting] = hot + [.strictMemorySafety()]
/// Pure targets: no C, no clock, no socket, and so nothing unsafe.
let pure = strict

let package = Package(
    name: "rostrum",
    // Of RostrumClient alone: all else is for Linux.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2)],
    products: [
        .library(name: "RostrumClient", targets: ["RostrumClient"]),
        .library(name: "RostrumClientHeadless", targets: ["RostrumClientHeadless"]),
        .executable(name: "rostrum", targets: ["rostrum"]),
        .executable(name: "sfu-bench", targets: ["sfu-bench"]),
    ],
    targets: [
        // Ground and formats.
        .target(name: "Base", swiftSettings: pure),
        .target(name: "Wire", dependencies: ["Base"], swiftSettings: pure),

        // C libraries and the Swift that owns their handles.
        .target(name: "COpenSSL", linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(name: "CSRTP", linkerSettings: [.linkedLibrary("srtp2")]),
        .target(name: "CUSRSCTP", linkerSettings: [.linkedLibrary("usrsctp")]),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "CLinux"),
        // The flavour that libavformat is linked with, too: two of them in one process would share their symbols.
        .target(name: "CSRT", dependencies: ["CLinux"], linkerSettings: [.linkedLibrary("srt-gnutls")]),
        .target(name: "CSandbox", linkerSettings: [.linkedLibrary("seccomp")]),
        .target(
            name: "CCodecs", dependencies: ["CPango"],
            linkerSettings: [
                .linkedLibrary("vpx"), .linkedLibrary("avcodec"), .linkedLibrary("avutil"),
                .linkedLibrary("swresample"), .linkedLibrary("yuv"), .linkedLibrary("webp"),
                .linkedLibrary("turbojpeg"),
            ]),
        .systemLibrary(name: "CPango", pkgConfig: "pangocairo"),
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib"),
        .target(
            name: "CComposing", dependencies: ["CPango"],
            linkerSettings: [.linkedLibrary("vpx"), .linkedLibrary("opus")]),
        .target(
            name: "CMuxer",
            linkerSettings: [
                .linkedLibrary("avformat"), .linkedLibrary("avcodec"), .linkedLibrary("avutil"),
            ]),
        .target(name: "CWebSockets", linkerSettings: [.linkedLibrary("websockets"), .linkedLibrary("uv")]),
        .target(name: "Crypto", dependencies: ["Base", "Wire", "COpenSSL", "CSRTP"], swiftSettings: strict),
        .target(name: "SCTP", dependencies: ["Base", "Wire", "CUSRSCTP"], swiftSettings: strict),
        .target(
            name: "Codecs", dependencies: ["Base", "Wire", "CCodecs", "CComposing", "CQREncode"],
            swiftSettings: strict),

        // Machines: no I/O and no clock.
        .target(name: "Peer", dependencies: ["Base", "Wire", "Crypto", "SCTP"], swiftSettings: pure),
        .target(name: "Forwarding", dependencies: ["Base", "Wire", "Crypto", "Peer"], swiftSettings: pure),

        .target(name: "Ingest", dependencies: ["Base", "Wire"], swiftSettings: pure),
        .target(name: "Restream", dependencies: ["Base", "Wire"], swiftSettings: pure),
        .target(name: "TURN", dependencies: ["Base", "Wire"], swiftSettings: pure),

        .target(name: "Stage", dependencies: ["Base"], swiftSettings: pure),
        .target(name: "StoryFeed", dependencies: ["Base"], swiftSettings: pure),
        .target(name: "Interaction", dependencies: ["Base"], swiftSettings: pure),
        .target(name: "HLS", dependencies: ["Base"], swiftSettings: pure),

        // Edges: threads, sockets, disks, clocks.
        .target(
            name: "Net", dependencies: ["Base", "Wire", "Crypto", "Peer", "CLinux", "CSRT"],
            swiftSettings: strict),
        .target(
            name: "ClientPeer", dependencies: ["Base", "Wire", "Crypto", "SCTP", "Peer"],
            swiftSettings: hot),
        .target(
            name: "Transcoder", dependencies: ["Base", "Wire", "Codecs", "CLinux", "CMuxer", "CSandbox"],
            swiftSettings: strict),
        .target(
            name: "Store", dependencies: ["Base", "CSQLite"],
            swiftSettings: common + [.strictMemorySafety()]),
        .target(
            name: "Webhooks", dependencies: ["Base", "Crypto", "Store", "CCurl"], swiftSettings: common),
        .target(name: "HTTP", dependencies: ["Base", "CWebSockets", "CZlib"], swiftSettings: strict),

        .target(
            name: "Recordings", dependencies: ["Base", "Wire", "Forwarding", "Store", "Transcoder"],
            swiftSettings: common),

        // Service and entrance.
        .target(
            name: "Node",
            dependencies: [
                "Base", "Wire", "Crypto", "Peer", "Forwarding", "Ingest", "Restream", "TURN", "Net", "Stage",
                "StoryFeed", "Interaction", "HLS", "Store", "Transcoder", "Recordings",
            ],
            swiftSettings: common),
        .target(
            name: "Gateway",
            dependencies: [
                "Base", "Wire", "Crypto", "Codecs", "Forwarding", "Restream", "TURN", "Net", "Stage",
                "StoryFeed", "Interaction", "HLS", "Store", "Transcoder", "HTTP", "Recordings", "Node",
            ],
            resources: [.copy("Web"), .copy("OpenAPI/openapi.json"), .copy("OpenAPI/asyncapi.json")],
            swiftSettings: common),

        // For apps.
        .target(name: "RostrumClient", swiftSettings: common),
        .target(
            name: "RostrumClientHeadless",
            dependencies: ["Base", "Wire", "Crypto", "Peer", "Net", "ClientPeer", "HTTP", "RostrumClient"],
            swiftSettings: common),

        // Programs.
        .executableTarget(
            name: "rostrum",
            dependencies: [
                "Base", "Crypto", "Codecs", "Net", "HTTP", "Recordings", "Node", "Gateway", "Store",
                "StoryFeed",
                "Webhooks", "Transcoder",
            ],
            swiftSettings: common),
        .executableTarget(
            name: "sfu-bench",
            dependencies: [
                "Base", "Wire", "Crypto", "Codecs", "Peer", "Restream", "TURN", "ClientPeer", "Net",
                "RostrumClient", "CCurl", "CMuxer",
            ],
            swiftSettings: common),
        .executableTarget(
            name: "headless-recorder",
            dependencies: ["Base", "Net", "Transcoder", "RostrumClient", "RostrumClientHeadless"],
            swiftSettings: common),
        .executableTarget(
            name: "headless-speaker",
            dependencies: ["Codecs", "RostrumClient", "RostrumClientHeadless"], swiftSettings: common),

        // Tests.
        .target(name: "MallocCounter", path: "Tests/MallocCounter"),
        .target(name: "Trespass", path: "Tests/Trespass"),
        .target(
            name: "SimulatedLibraries", path: "Tests/SimulatedLibraries",
            linkerSettings: [.linkedLibrary("crypto")]),
        .target(
            name: "TestSupport", dependencies: ["Base", "Wire"], path: "Tests/Support", swiftSettings: hot),
        .target(name: "TestTraits", path: "Tests/Traits", swiftSettings: common),
        .target(
            name: "HTTPTestSupport", dependencies: ["Base", "HTTP"], path: "Tests/HTTPTestSupport",
            swiftSettings: common),
        .target(
            name: "FuzzEntries",
            dependencies: [
                "Base", "Wire", "Crypto", "SCTP", "Peer", "Forwarding", "Ingest", "Restream", "TURN", "Stage",
                "StoryFeed", "Interaction", "HLS", "HTTP", "Transcoder", "Recordings", "Node", "Gateway",
                "TestSupport",
            ],
            path: "Tests/Fuzz",
            exclude: ["README.md"], swiftSettings: common),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzEntries", "TestSupport"], swiftSettings: common),
        .testTarget(name: "BaseTests", dependencies: ["Base", "TestSupport"], swiftSettings: common),
        .testTarget(
            name: "StoreTests", dependencies: ["Base", "Store", "CSQLite", "TestSupport", "store-trial"],
            swiftSettings: common),
        .testTarget(
            name: "WebhooksTests", dependencies: ["Base", "Store", "Webhooks", "TestSupport"],
            exclude: ["receiver.py"], swiftSettings: common),
        .executableTarget(
            name: "store-trial", dependencies: ["Base", "Store"], path: "Tests/StoreTrial",
            swiftSettings: common),
        .executableTarget(
            name: "duel-trial",
            dependencies: ["Base", "Stage", "Interaction", "Store", "Node", "TestSupport"],
            path: "Tests/DuelTrial", swiftSettings: common),
        .executableTarget(
            name: "composition-trial", dependencies: ["Base", "CLinux", "Codecs", "Transcoder"],
            path: "Tests/CompositionTrial", swiftSettings: common),
        .executableTarget(
            name: "transcoder-trial", dependencies: ["Transcoder", "Trespass"], path: "Tests/TranscoderTrial",
            swiftSettings: common),
        .testTarget(
            name: "WireTests", dependencies: ["Base", "Wire", "TestSupport", "MallocCounter"],
            swiftSettings: common),
        .testTarget(
            name: "CryptoTests",
            dependencies: ["Base", "Wire", "Crypto", "COpenSSL", "TestSupport", "MallocCounter"],
            swiftSettings: common),
        .testTarget(
            name: "SCTPTests", dependencies: ["Base", "Wire", "SCTP", "TestSupport", "TestTraits"],
            swiftSettings: common),
        .testTarget(
            name: "CodecsTests", dependencies: ["Base", "Wire", "Codecs", "TestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "TranscoderTests",
            dependencies: [
                "Base", "Wire", "Codecs", "CLinux", "CSandbox", "Transcoder", "TestSupport", "rostrum",
                "transcoder-trial",
            ],
            swiftSettings: common),
        .testTarget(
            name: "PeerTests",
            dependencies: ["Base", "Wire", "Crypto", "SCTP", "Peer", "TestSupport", "TestTraits"],
            swiftSettings: common),
        .testTarget(
            name: "ForwardingTests",
            dependencies: ["Base", "Wire", "Crypto", "Peer", "Forwarding", "TestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "IngestTests", dependencies: ["Base", "Wire", "Ingest", "TestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "RestreamTests", dependencies: ["Base", "Wire", "Ingest", "Restream", "TestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "TURNTests", dependencies: ["Base", "Wire", "Crypto", "TURN", "TestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "StageTests", dependencies: ["Base", "Stage", "TestSupport"], swiftSettings: common),
        .testTarget(
            name: "InteractionTests", dependencies: ["Base", "Interaction", "TestSupport", "MallocCounter"],
            swiftSettings: common),
        .testTarget(
            name: "HLSTests", dependencies: ["Base", "HLS", "TestSupport"], swiftSettings: common),
        .testTarget(
            name: "StoryFeedTests", dependencies: ["Base", "StoryFeed", "TestSupport"], swiftSettings: common),
        .testTarget(
            name: "NetTests",
            dependencies: [
                "Base", "Wire", "Crypto", "Peer", "Net", "CLinux", "COpenSSL", "TestSupport", "MallocCounter",
            ],
            swiftSettings: common),
        .testTarget(
            name: "NodeTests",
            dependencies: [
                "Base", "Wire", "Crypto", "Net", "Peer", "Forwarding", "Restream", "Stage", "StoryFeed",
                "Ingest", "Interaction", "TURN", "Store", "Transcoder", "Recordings", "Node", "TestSupport",
                "duel-trial",
            ],
            swiftSettings: common),
        .testTarget(
            name: "RecordingsTests",
            dependencies: [
                "Base", "Wire", "Forwarding", "Net", "Store", "Transcoder", "Recordings", "TestSupport",
            ],
            swiftSettings: common),
        .testTarget(
            name: "RostrumTests",
            dependencies: [
                "Base", "Crypto", "HTTP", "Node", "Gateway", "Store", "StoryFeed", "Transcoder", "rostrum",
                "TestSupport",
            ],
            swiftSettings: common),
        .testTarget(
            name: "HTTPTests", dependencies: ["Base", "HTTP", "TestSupport", "HTTPTestSupport"],
            swiftSettings: common),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "Base", "Wire", "Crypto", "Forwarding", "Restream", "Stage", "StoryFeed", "Interaction",
                "HLS", "Store", "Transcoder", "Recordings", "HTTP", "Node", "Gateway", "TestSupport",
                "HTTPTestSupport",
            ],
            swiftSettings: common),
        .testTarget(
            name: "BenchTests",
            dependencies: [
                "Base", "Wire", "Crypto", "Codecs", "Peer", "Ingest", "Restream", "TURN", "ClientPeer", "Net",
                "HTTP", "TestSupport", "HTTPTestSupport", "sfu-bench",
            ],
            swiftSettings: common),
        .testTarget(
            name: "RostrumClientTests",
            dependencies: [
                "Base", "Wire", "Peer", "Net", "ClientPeer", "RostrumClient", "RostrumClientHeadless", "HTTP",
                "HTTPTestSupport", "TestSupport", "rostrum",
            ],
            swiftSettings: common),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "Base", "Wire", "Crypto", "SCTP", "Peer", "Forwarding", "Stage", "StoryFeed", "Interaction",
                "Store",
                "Net", "Node", "ClientPeer", "TestSupport", "TestTraits", "MallocCounter",
                "SimulatedLibraries",
            ],
            swiftSettings: hot),
    ]
)
