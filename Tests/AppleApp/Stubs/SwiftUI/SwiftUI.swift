// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Observation
@_exported public import UIKit

// What Examples/iOS uses of SwiftUI, with its signatures (https://developer.apple.com/documentation/swiftui). Nothing
// is drawn.

@MainActor @preconcurrency
public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {
    public var body: Never { fatalError("a view without a body") }
}

/// The view that all views of this module are.
public struct AnyStub: View {
    nonisolated init() {}
    public var body: Never { fatalError("a view without a body") }
}

@resultBuilder
public enum ViewBuilder {
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> AnyStub { AnyStub() }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<First: View, Second: View>(first: First) -> _ConditionalContent<First, Second> {
        _ConditionalContent()
    }
    public static func buildEither<First: View, Second: View>(second: Second) -> _ConditionalContent<First, Second> {
        _ConditionalContent()
    }
}

extension Optional: View where Wrapped: View {
    public var body: Never { fatalError("a view without a body") }
}

public struct _ConditionalContent<First: View, Second: View>: View {
    public var body: Never { fatalError("a view without a body") }
}

@MainActor @preconcurrency
public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}

extension Never: Scene {}

@resultBuilder
public enum SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) { _ = content() }
    public var body: Never { fatalError("a scene without a body") }
}

@MainActor @preconcurrency
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    public static func main() { _ = Self().body }
}

// MARK: Data

@propertyWrapper
public struct State<Value> {
    private final class Box {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private let box: Box
    public init(wrappedValue value: Value) { box = Box(value) }
    public var wrappedValue: Value {
        get { box.value }
        nonmutating set { box.value = newValue }
    }
    public var projectedValue: Binding<Value> { Binding() }
}

extension State: @unchecked Sendable where Value: Sendable {}

@propertyWrapper
public struct Binding<Value> {
    public init() {}
    public var wrappedValue: Value {
        get { fatalError("a binding without a view") }
        nonmutating set { _ = newValue }
    }
}

@propertyWrapper
public struct Environment<Value> {
    public init(_ objectType: Value.Type) where Value: AnyObject, Value: Observable {}
    public var wrappedValue: Value { fatalError("a view outside of its environment") }
}

extension Environment: Sendable where Value: Sendable {}

public struct LocalizedStringKey: ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) {}
}

// MARK: Views

public struct Text: View {
    public init(
        _ key: LocalizedStringKey,
        tableName: String? = nil,
        bundle: Bundle? = nil,
        comment: StaticString? = nil
    ) {}
    @_disfavoredOverload
    public init<S: StringProtocol>(_ content: S) {}
    public var body: Never { fatalError("a view without a body") }
}

public struct ButtonRole: Equatable, Sendable {
    public static let destructive = ButtonRole()
}

public struct Button: View {
    public init(_ titleKey: LocalizedStringKey, action: @escaping @MainActor () -> Void) {}
    public init(_ titleKey: LocalizedStringKey, role: ButtonRole?, action: @escaping @MainActor () -> Void) {}
    public var body: Never { fatalError("a view without a body") }
}

public struct List: View {
    public init<Content: View>(@ViewBuilder content: () -> Content) { _ = content() }
    public var body: Never { fatalError("a view without a body") }
}

public struct Section: View {
    public init<Content: View>(@ViewBuilder content: () -> Content) { _ = content() }
    public init<Content: View>(_ titleKey: LocalizedStringKey, @ViewBuilder content: () -> Content) { _ = content() }
    public var body: Never { fatalError("a view without a body") }
}

public struct LabeledContent: View {
    public init<S: StringProtocol>(_ titleKey: LocalizedStringKey, value: S) {}
    public var body: Never { fatalError("a view without a body") }
}

public struct ProgressView: View {
    public init() {}
    public var body: Never { fatalError("a view without a body") }
}

public enum Visibility: Sendable { case automatic, visible, hidden }

extension View {
    nonisolated public func environment<T: AnyObject & Observable>(_ object: T?) -> some View { AnyStub() }

    nonisolated public func task(
        priority: TaskPriority = .userInitiated,
        @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View { AnyStub() }

    nonisolated public func refreshable(action: @escaping @Sendable () async -> Void) -> some View { AnyStub() }

    nonisolated public func onOpenURL(perform action: @escaping (URL) -> Void) -> some View { AnyStub() }

    nonisolated public func confirmationDialog<A: View>(
        _ titleKey: LocalizedStringKey,
        isPresented: Binding<Bool>,
        titleVisibility: Visibility = .automatic,
        @ViewBuilder actions: () -> A
    ) -> some View { AnyStub() }
}
