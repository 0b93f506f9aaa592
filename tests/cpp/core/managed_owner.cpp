// SPDX-License-Identifier: Apache-2.0
//
// The owner of a managed tensor runs its deleter once, whichever way it loses it.
#include <usm_dlpack/core/managed.hpp>

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace {

using usm_dlpack::legacy_managed_tensor;
using usm_dlpack::managed_tensor;

static_assert(!std::is_copy_constructible_v<managed_tensor>);
static_assert(!std::is_copy_assignable_v<managed_tensor>);
static_assert(std::is_nothrow_move_constructible_v<managed_tensor>);
static_assert(std::is_nothrow_move_assignable_v<managed_tensor>);
static_assert(!std::is_convertible_v<DLManagedTensorVersioned*, managed_tensor>);
static_assert(std::is_same_v<legacy_managed_tensor::element_type, DLManagedTensor>);

/// A managed tensor that counts its deletions.
template <class Managed>
struct counted {
  Managed managed{};
  int deleted = 0;

  counted() {
    managed.manager_ctx = &deleted;
    managed.deleter = [](Managed* self) { ++*static_cast<int*>(self->manager_ctx); };
  }
};
using counted_tensor = counted<DLManagedTensorVersioned>;

TEST(ManagedOwner, RunsTheDeleterWhenItGoes) {
  counted_tensor versioned;
  counted<DLManagedTensor> legacy;
  {
    const managed_tensor owner(&versioned.managed);
    const legacy_managed_tensor other(&legacy.managed);
    EXPECT_EQ(owner.get(), &versioned.managed);
    EXPECT_EQ(&*owner, &versioned.managed);
    EXPECT_EQ(owner->manager_ctx, &versioned.deleted);
    EXPECT_TRUE(owner && owner != nullptr && nullptr != owner);
    EXPECT_FALSE(owner == nullptr || nullptr == owner);
    EXPECT_EQ(versioned.deleted + legacy.deleted, 0);
  }
  EXPECT_EQ(versioned.deleted, 1);
  EXPECT_EQ(legacy.deleted, 1);
}

TEST(ManagedOwner, LeavesANullDeleterUncalled) {
  counted_tensor one;
  one.managed.deleter = nullptr;
  {
    const managed_tensor owner(&one.managed);
  }
  EXPECT_EQ(one.deleted, 0);
}

TEST(ManagedOwner, OwnsNothingUntilTold) {
  const managed_tensor none;
  const managed_tensor null = nullptr;
  EXPECT_TRUE(none == nullptr && nullptr == null && null.get() == nullptr);
  EXPECT_FALSE(none || none != nullptr || nullptr != null);
}

TEST(ManagedOwner, GivesAwayWhatItReleases) {
  counted_tensor one;
  {
    managed_tensor owner(&one.managed);
    EXPECT_EQ(owner.release(), &one.managed);
    EXPECT_EQ(owner, nullptr);
    EXPECT_EQ(owner.release(), nullptr);
  }
  EXPECT_EQ(one.deleted, 0);
}

TEST(ManagedOwner, AMoveTakesAndLetsGoOfWhatWasThere) {
  counted_tensor first;
  counted_tensor second;
  managed_tensor owner(&first.managed);
  managed_tensor other(std::move(owner));
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(first.deleted, 0);
  owner = managed_tensor(&second.managed);
  owner = std::move(other);
  EXPECT_EQ(second.deleted, 1);
  EXPECT_EQ(owner.get(), &first.managed);
  EXPECT_EQ(other, nullptr);
  managed_tensor& same = owner;
  owner = std::move(same);
  EXPECT_EQ(owner.get(), &first.managed);
  owner = nullptr;
  EXPECT_EQ(first.deleted, 1);
}

TEST(ManagedOwner, AResetLetsGoOfWhatWasThere) {
  counted_tensor first;
  counted_tensor second;
  managed_tensor owner(&first.managed);
  owner.reset(&second.managed);
  EXPECT_EQ(first.deleted, 1);
  EXPECT_EQ(owner.get(), &second.managed);
  owner.reset();
  EXPECT_EQ(second.deleted, 1);
  EXPECT_EQ(owner, nullptr);
}

/// A managed tensor whose deleter looks back at its owner, and resets it again.
struct looking_back {
  DLManagedTensorVersioned managed{};
  managed_tensor owner{&managed};
  DLManagedTensorVersioned* seen = &managed;
  int deleted = 0;

  looking_back() {
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      auto& all = *static_cast<looking_back*>(self->manager_ctx);
      ++all.deleted;
      all.seen = all.owner.get();
      if (all.deleted == 1) {
        all.owner.reset();
      }
    };
  }
};

TEST(ManagedOwner, LetsGoOfATensorBeforeItsDeleterRuns) {
  looking_back one;
  one.owner.reset();
  EXPECT_EQ(one.deleted, 1);
  EXPECT_EQ(one.seen, nullptr);

  looking_back other;
  counted_tensor next;
  other.owner.reset(&next.managed);
  EXPECT_EQ(other.deleted, 1);
  EXPECT_EQ(other.seen, &next.managed);
  EXPECT_EQ(next.deleted, 1);
  EXPECT_EQ(other.owner, nullptr);
}

}  // namespace
