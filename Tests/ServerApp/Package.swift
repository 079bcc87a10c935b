// swift-tools-version: 6.2
// WorkerTokens and Examples/Servers as they compile in a Hummingbird and in a Vapor server, without these packages: with
// modules that declare what the examples use of them. `scripts/check-package` builds this package and runs its tests.

import PackageDescription

let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "server-app",
    targets: [
        .target(name: "NIOCore", path: "Stubs/NIOCore", swiftSettings: settings),
        .target(name: "NIOHTTP1", path: "Stubs/NIOHTTP1", swiftSettings: settings),
        .target(name: "HTTPTypes", path: "Stubs/HTTPTypes", swiftSettings: settings),
        .target(
            name: "AsyncHTTPClient",
            dependencies: ["NIOCore", "NIOHTTP1"],
            path: "Stubs/AsyncHTTPClient",
            swiftSettings: settings
        ),
        .target(
            name: "Hummingbird",
            dependencies: ["HTTPTypes", "NIOCore"],
            path: "Stubs/Hummingbird",
            swiftSettings: settings
        ),
        .target(
            name: "Vapor",
            dependencies: ["NIOCore", "NIOHTTP1"],
            path: "Stubs/Vapor",
            swiftSettings: settings
        ),
        // Links to the sources: a target's folder must lie in its package.
        .target(
            name: "WorkerTokens",
            path: "WorkerTokens",
            swiftSettings: settings + [.enableUpcomingFeature("InternalImportsByDefault")]
        ),
        .target(
            name: "Examples",
            dependencies: [
                "AsyncHTTPClient", "HTTPTypes", "Hummingbird", "NIOCore", "NIOHTTP1", "Vapor", "WorkerTokens",
            ],
            path: "Examples",
            swiftSettings: settings
        ),
        .testTarget(
            name: "ServerAppTests",
            dependencies: [
                "AsyncHTTPClient", "Examples", "HTTPTypes", "Hummingbird", "NIOCore", "NIOHTTP1", "Vapor",
                "WorkerTokens",
            ],
            path: "ServerAppTests",
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
