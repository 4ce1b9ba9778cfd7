// One forward pass: the sums of a set, its coefficients, then x^ and y, set by set while its values are in cache.

#include <hwy/cache_control.h>

#include "src/ops/normalization/normalization_plan.h"

namespace bnns {
namespace {

class ForwardPass {
 public:
  ForwardPass(const NormalizationProblem& problem, NormalizationParameters& parameters,
              const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads)
      : problem_(problem),
        parameters_(parameters),
        call_(call),
        plan_(problem, call.batch),
        n_threads_(n_threads),
        values_(call.state ? call.state->values() : nullptr),
        moving_mean_wanted_(!call.state && problem.has_moving_mean()),
        moving_variance_wanted_(!call.state && problem.has_moving_variance()),
        update_(call.state && (problem.has_moving_mean() || problem.has_moving_variance())),
        schedule_(plan_, n_threads, bytes()),
        lease_(scratch, layout()),
        x_(plan_, call.x_is_dense ? vector_tensor(problem.count(), nullptr) : problem.x, call.x, call.x_stride),
        y_(plan_, problem.y, call.y, call.y_stride),
        affine_(plan_, parameters, at<float>(affine_at_)) {
    x_direct_ = x_.direct({0, 0, 1, 1});
    gather_moments_ = !call.moments && !(moving_mean_wanted_ && moving_variance_wanted_);
    separate_activation_ = needs_activation_pass(problem.activation);
    stream_ = plan_.batch * problem.count() * sizeof(float) >= kNormalizationStreamBytes && !separate_activation_ &&
              !plan_.by_columns;
    if (moving_mean_wanted_ || moving_variance_wanted_) {
      parameters.read_moving(moving_mean_wanted_ ? at<float>(moving_at_) : nullptr,
                             moving_variance_wanted_ ? at<float>(moving_at_) + problem.channels : nullptr);
    }
  }

  void run() {
    if (plan_.by_columns) {
      run_columns();
    } else if (schedule_.split) {
      run_split();
    } else {
      parallel_for(schedule_.tasks, schedule_.threads, [&](size_t task, size_t) {
        const size_t first = task * schedule_.sets_per_task;
        for (size_t set = first; set < std::min(plan_.sets, first + schedule_.sets_per_task); ++set) run_set(set);
        if (stream_) hwy::FlushStream();
      });
    }
    if (update_) update_moving();
  }

 private:
  size_t bytes() const { return 4 * plan_.batch * problem_.count() * sizeof(float); }
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(lease_.as<char>() + offset);
  }
  size_t layout() {
    ScratchLayout layout;
    affine_at_ = layout.add<float>(Affine::room_floats(plan_, parameters_));
    if (moving_mean_wanted_ || moving_variance_wanted_) moving_at_ = layout.add<float>(2 * problem_.channels);
    if (update_) statistics_at_ = layout.add<double>(checked_mul(2, plan_.sets, "scratch"));
    if (schedule_.split) {
      moments_at_ = layout.add<MomentSums>(plan_.sets * plan_.segments);
      coefficients_at_ = layout.add<SetCoefficients>(plan_.sets);
    }
    return layout.bytes();
  }

  // ---- statistics ----

  ConstMatrix values(const Rectangle& r) const {
    return {values_ + r.row * plan_.row_length + r.column, plan_.row_length};
  }
  // Training copies what it cannot read in place to where x^ will be, once.
  void stage(const Rectangle& r) const {
    for (size_t i = 0; i < r.rows; ++i) {
      const Rectangle row{r.row + i, r.column, 1, r.columns};
      x_.gather(row, values_ + row.row * plan_.row_length + row.column);
    }
  }
  ConstMatrix first_read(const Rectangle& r, float* room) const {
    if (x_direct_ || !values_) return x_.read(r, room);
    stage(r);
    return values(r);
  }
  ConstMatrix second_read(const Rectangle& r, float* room) const {
    return x_direct_ || !values_ ? x_.read(r, room) : values(r);
  }

  MomentSums segment_moments(size_t set, size_t segment) const {
    MomentSums sums;
    float room[kMomentBlock];
    for_each_block(plan_, plan_.segment(set, segment), [&](const Rectangle& r) {
      const ConstMatrix x = first_read(r, room);
      sums.merge(moments_of_block(x.data, r.rows, x.stride, r.columns));
    });
    return sums;
  }

  // Keeps what backward and the moving statistics need of a set.
  SetCoefficients finish_set(size_t set, const MomentSums& sums) const {
    const size_t channel = set % problem_.channels;  // moving statistics: a set is a channel, or a channel of a sample
    const float* moving = at<float>(moving_at_);
    const double mean = moving_mean_wanted_ ? static_cast<double>(moving[channel]) : sums.mean();
    const double variance =
        moving_variance_wanted_ ? static_cast<double>(moving[problem_.channels + channel]) : sums.variance();
    const SetCoefficients set_coefficients = make_set_coefficients(mean, variance, problem_.epsilon);
    if (call_.state) call_.state->rstd()[set] = set_coefficients.rstd;
    if (update_) {
      at<double>(statistics_at_)[set] = mean;
      at<double>(statistics_at_)[plan_.sets + set] = variance;
    }
    return set_coefficients;
  }

  // ---- x^ and y ----

  NormalizeBlock block(const Rectangle& r, const ConstMatrix& x, const Matrix& y) const {
    NormalizeBlock block;
    block.x = x.data;
    block.x_stride = x.stride;
    block.values = values_ ? const_cast<float*>(values(r).data) : nullptr;
    block.values_stride = plan_.row_length;
    block.y = y.data;
    block.y_stride = y.stride;
    block.rows = r.rows;
    block.n = r.columns;
    block.floor = activation_floor(problem_.activation);
    block.stream = stream_ && y_.direct(r);  // a room is read again at once
    return block;
  }
  void finish_block(const Rectangle& r, const Matrix& y) const {
    for (size_t i = 0; separate_activation_ && i < r.rows; ++i) {
      activation_forward(problem_.activation, y.data + i * y.stride, y.data + i * y.stride, r.columns);
    }
    y_.bring(r, y.data, false);
  }

  void normalize_segment(size_t set, size_t segment, const SetCoefficients& set_coefficients) const {
    float x_room[kMomentBlock], y_room[kMomentBlock];
    for_each_block(plan_, plan_.segment(set, segment), [&](const Rectangle& r) {
      const ConstMatrix x = second_read(r, x_room);
      const Matrix y = y_.target(r, y_room);
      if (!plan_.per_element) {
        const size_t channel = plan_.channel(set, r.row);
        normalize_block(block(r, x, y), set_coefficients, affine_.gamma[channel], affine_.beta[channel]);
      } else if (!affine_.gamma) {
        normalize_block(block(r, x, y), set_coefficients, 1, 0);
      } else {
        const size_t first = plan_.affine_offset(set) + r.column;
        normalize_row_block(block(r, x, y), set_coefficients, affine_.gamma + first, affine_.beta + first);
      }
      finish_block(r, y);
    });
  }

  void run_set(size_t set) const {
    MomentSums sums;
    if (call_.moments) sums = call_.moments[set];
    for (size_t s = 0; gather_moments_ && s < plan_.segments; ++s) sums.merge(segment_moments(set, s));
    const SetCoefficients set_coefficients = finish_set(set, sums);
    for (size_t s = 0; s < plan_.segments; ++s) normalize_segment(set, s, set_coefficients);
  }

  void run_split() const {
    MomentSums* moments = at<MomentSums>(moments_at_);
    SetCoefficients* coefficients = at<SetCoefficients>(coefficients_at_);
    const size_t tasks = plan_.sets * plan_.segments;
    if (gather_moments_) {
      parallel_for(tasks, schedule_.threads, [&](size_t task, size_t) {
        moments[task] = segment_moments(task / plan_.segments, task % plan_.segments);
      });
    }
    for (size_t set = 0; set < plan_.sets; ++set) {
      MomentSums sums;
      if (call_.moments) sums = call_.moments[set];
      for (size_t s = 0; gather_moments_ && s < plan_.segments; ++s) sums.merge(moments[set * plan_.segments + s]);
      coefficients[set] = finish_set(set, sums);
    }
    parallel_for(tasks, schedule_.threads, [&](size_t task, size_t) {
      normalize_segment(task / plan_.segments, task % plan_.segments, coefficients[task / plan_.segments]);
      if (stream_) hwy::FlushStream();
    });
  }

  // ---- batch normalization of short planes: kColumns neighbouring values of every sample at once ----

  void run_columns() const {
    const size_t channels_per_task = kColumns / plan_.plane, tasks = div_up(plan_.channels, channels_per_task);
    parallel_for(tasks, threads_for(n_threads_, tasks, bytes()), [&](size_t task, size_t) {
      const size_t first = task * channels_per_task;
      run_channels(first, std::min(channels_per_task, plan_.channels - first));
    });
  }

  void run_channels(size_t first_channel, size_t channels) const {
    const size_t plane = plan_.plane, columns = channels * plane;
    float x_room[kColumnRows * kColumns], y_room[kColumnRows * kColumns];
    const auto rows_at = [&](size_t row) {
      return Rectangle{row, first_channel * plane, std::min(kColumnRows, plan_.batch - row), columns};
    };
    MomentSums sums[kColumns];
    for (size_t row = 0; gather_moments_ && row < plan_.batch; row += kColumnRows) {
      const Rectangle r = rows_at(row);
      const ConstMatrix x = first_read(r, x_room);
      merge_column_moments(x.data, r.rows, x.stride, columns, sums);
    }
    ColumnCoefficients numbers;
    for (size_t c = 0; c < channels; ++c) {
      const size_t channel = first_channel + c;
      MomentSums total;
      if (call_.moments) total = call_.moments[channel];
      for (size_t p = 0; gather_moments_ && p < plane; ++p) total.merge(sums[c * plane + p]);
      const SetCoefficients set = finish_set(channel, total);
      for (size_t j = c * plane; j < (c + 1) * plane; ++j) {
        numbers.mean_high[j] = set.mean_high;
        numbers.mean_low[j] = set.mean_low;
        numbers.rstd[j] = set.rstd;
        numbers.gamma[j] = affine_.gamma[channel];
        numbers.beta[j] = affine_.beta[channel];
      }
    }
    for (size_t row = 0; row < plan_.batch; row += kColumnRows) {
      const Rectangle r = rows_at(row);
      const ConstMatrix x = second_read(r, x_room);
      const Matrix y = y_.target(r, y_room);
      normalize_column_block(block(r, x, y), numbers);
      finish_block(r, y);
    }
  }

  // Instance normalization averages the statistics of its samples first (K20).
  void update_moving() const {
    double* mean = at<double>(statistics_at_);
    double* variance = mean + plan_.sets;
    if (problem_.kind == NormalizationKind::instance) {
      for (double* statistic : {mean, variance}) {
        for (size_t c = 0; c < problem_.channels; ++c) {
          double sum = 0;
          for (size_t n = 0; n < plan_.batch; ++n) sum += statistic[n * problem_.channels + c];
          statistic[c] = sum / static_cast<double>(plan_.batch);
        }
      }
    }
    parameters_.update_moving(problem_.momentum, mean, variance);
  }

  const NormalizationProblem& problem_;
  NormalizationParameters& parameters_;
  const NormalizationForward& call_;
  NormalizationPlan plan_;
  size_t n_threads_;
  float* values_;  // x^ of a training pass
  bool moving_mean_wanted_, moving_variance_wanted_, update_;
  Schedule schedule_;
  size_t affine_at_ = 0, moving_at_ = 0, statistics_at_ = 0, moments_at_ = 0, coefficients_at_ = 0;
  ScratchShelf::Lease lease_;
  MatrixView x_, y_;
  Affine affine_;
  bool x_direct_, gather_moments_, separate_activation_, stream_;
};

}  // namespace

void normalization_forward(const NormalizationProblem& problem, NormalizationParameters& parameters,
                           const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads) {
  ForwardPass(problem, parameters, call, scratch, n_threads).run();
}

}  // namespace bnns
