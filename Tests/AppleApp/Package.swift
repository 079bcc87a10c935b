// swift-tools-version: 6.2
// AccountClient and Examples/iOS as they compile on iOS, on Linux: with modules that declare what they use of Apple's
// frameworks and of Google's SDK. `scripts/check-package` builds this package and runs its tests.

import PackageDescription

let settings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "apple-app",
    targets: [
        .target(name: "Security", path: "Stubs/Security", swiftSettings: settings),
        .target(name: "UIKit", path: "Stubs/UIKit", swiftSettings: settings),
        .target(name: "SwiftUI", dependencies: ["UIKit"], path: "Stubs/SwiftUI", swiftSettings: settings),
        .target(name: "GoogleSignIn", dependencies: ["UIKit"], path: "Stubs/GoogleSignIn", swiftSettings: settings),
        // Links to the sources: a target's folder must lie in its package.
        .target(
            name: "AccountClient",
            dependencies: ["Security"],
            path: "AccountClient",
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: settings + [.enableUpcomingFeature("InternalImportsByDefault")]
        ),
        .executableTarget(
            name: "Example",
            dependencies: ["AccountClient", "GoogleSignIn", "SwiftUI", "UIKit"],
            path: "Example",
            exclude: ["Info.plist"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "AppleAppTests",
            dependencies: ["AccountClient", "Example", "GoogleSignIn", "Security", "UIKit"],
            path: "AppleAppTests",
            // On Apple systems Swift Testing has a module of its own for UIKit.
            swiftSettings: settings + [.unsafeFlags(["-Xfrontend", "-disable-cross-import-overlays"])]
        ),
    ],
    swiftLanguageModes: [.v6]
)
