// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

@_exported public import Foundation

// What Examples/iOS uses of UIKit (https://developer.apple.com/documentation/uikit).

@MainActor
open class UIResponder: NSObject {}

@MainActor
open class UIViewController: UIResponder {
    public private(set) var presentedViewController: UIViewController?

    public override init() { super.init() }
}

@MainActor
open class UIWindow: UIResponder {
    public var rootViewController: UIViewController?
}

@MainActor
open class UIScene: UIResponder {
    public enum ActivationState: Int, Sendable {
        case unattached = -1
        case foregroundActive
        case foregroundInactive
        case background
    }

    public private(set) var activationState = ActivationState.foregroundActive
}

@MainActor
open class UIWindowScene: UIScene {
    public var keyWindow: UIWindow?
}

@MainActor
open class UIApplication: UIResponder {
    public static let shared = UIApplication()
    public private(set) var connectedScenes: Set<UIScene> = []
}
