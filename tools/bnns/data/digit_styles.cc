#include "tools/bnns/data/digit_styles.h"

namespace bnns::tool {

// clang-format off
const std::array<std::vector<Style>, kClasses>& digit_styles() {
  constexpr Pen curve = Pen::curve, line = Pen::line;
  static const std::array<std::vector<Style>, kClasses> kStyles = {{
    // 0: round; narrow; begun at the top right and not quite closed
    {{{curve, {{.5f, 0}, {.14f, .18f}, {.04f, .5f}, {.14f, .83f}, {.5f, 1}, {.86f, .83f}, {.96f, .5f}, {.84f, .16f},
               {.5f, 0}, {.3f, .06f}}}},
     {{curve, {{.52f, 0}, {.3f, .2f}, {.22f, .55f}, {.3f, .88f}, {.5f, 1}, {.7f, .86f}, {.78f, .5f}, {.7f, .15f},
               {.52f, 0}}}},
     {{curve, {{.72f, .1f}, {.4f, .02f}, {.1f, .3f}, {.08f, .7f}, {.4f, 1}, {.8f, .86f}, {.94f, .45f}, {.76f, .12f},
               {.5f, .1f}}}}},
    // 1: a bar; with a flag; with flag and foot
    {{{line, {{.5f, 0}, {.5f, .5f}, {.5f, 1}}}},
     {{line, {{.3f, .24f}, {.56f, 0}, {.56f, .5f}, {.56f, 1}}}},
     {{line, {{.32f, .2f}, {.55f, 0}, {.55f, 1}}},
      {line, {{.3f, 1}, {.8f, .98f}}}}},
    // 2: straight foot; loop at the foot; swung foot
    {{{curve, {{.1f, .26f}, {.3f, .03f}, {.66f, .02f}, {.86f, .26f}, {.7f, .5f}, {.4f, .75f}, {.08f, 1}}},
      {line, {{.08f, 1}, {.95f, .98f}}}},
     {{curve, {{.1f, .2f}, {.4f, 0}, {.8f, .12f}, {.8f, .4f}, {.5f, .75f}, {.2f, .97f}, {.06f, .86f}, {.24f, .76f},
               {.55f, .9f}, {.96f, .95f}}}},
     {{curve, {{.14f, .2f}, {.5f, 0}, {.85f, .25f}, {.55f, .6f}, {.1f, .95f}}},
      {curve, {{.1f, .95f}, {.5f, .86f}, {.98f, 1}}}}},
    // 3: two bowls; flat top; small loop at the waist
    {{{curve, {{.12f, .15f}, {.45f, 0}, {.8f, .12f}, {.76f, .38f}, {.4f, .48f}}},
      {curve, {{.4f, .48f}, {.8f, .56f}, {.9f, .8f}, {.5f, 1}, {.08f, .88f}}}},
     {{line, {{.12f, .02f}, {.84f, 0}, {.42f, .4f}}},
      {curve, {{.42f, .4f}, {.8f, .5f}, {.88f, .78f}, {.55f, 1}, {.1f, .92f}}}},
     {{curve, {{.1f, .12f}, {.5f, 0}, {.82f, .2f}, {.6f, .45f}, {.36f, .5f}, {.42f, .42f}, {.78f, .58f}, {.84f, .84f},
               {.5f, 1}, {.1f, .94f}}}}},
    // 4: open; closed; swung
    {{{line, {{.22f, .02f}, {.1f, .56f}, {.92f, .54f}}},
      {line, {{.74f, .12f}, {.7f, 1}}}},
     {{line, {{.66f, 0}, {.06f, .66f}, {.96f, .66f}}},
      {line, {{.66f, 0}, {.66f, 1}}}},
     {{curve, {{.16f, .05f}, {.1f, .38f}, {.26f, .55f}, {.82f, .46f}}},
      {line, {{.86f, .02f}, {.8f, .5f}, {.7f, 1}}}}},
    // 5: bar, stem, bowl; in one swing; bar added last and loose
    {{{line, {{.86f, .02f}, {.26f, 0}, {.18f, .44f}}},
      {curve, {{.18f, .44f}, {.5f, .34f}, {.85f, .5f}, {.86f, .8f}, {.5f, 1}, {.08f, .9f}}}},
     {{curve, {{.88f, .05f}, {.42f, .04f}, {.2f, .28f}, {.5f, .45f}, {.82f, .66f}, {.64f, .95f}, {.1f, .96f}}}},
     {{line, {{.24f, .08f}, {.22f, .42f}}},
      {curve, {{.22f, .42f}, {.6f, .4f}, {.84f, .64f}, {.66f, .95f}, {.12f, .98f}}},
      {line, {{.24f, .06f}, {.92f, 0}}}}},
    // 6: swung; steep with a small loop; wide loop
    {{{curve, {{.72f, 0}, {.36f, .25f}, {.1f, .65f}, {.25f, .95f}, {.66f, .98f}, {.86f, .75f}, {.6f, .55f},
               {.26f, .65f}, {.14f, .82f}}}},
     {{curve, {{.5f, 0}, {.26f, .4f}, {.14f, .76f}, {.36f, 1}, {.72f, .9f}, {.72f, .66f}, {.4f, .6f}, {.16f, .78f}}}},
     {{curve, {{.8f, .06f}, {.4f, .1f}, {.1f, .5f}, {.16f, .88f}, {.56f, 1}, {.9f, .78f}, {.72f, .48f}, {.36f, .5f},
               {.14f, .72f}}}}},
    // 7: plain; crossed; bent; with a hook
    {{{line, {{.06f, .02f}, {.92f, .02f}, {.4f, 1}}}},
     {{line, {{.06f, .02f}, {.92f, .02f}, {.4f, 1}}},
      {line, {{.32f, .52f}, {.84f, .5f}}}},
     {{line, {{.06f, .1f}, {.9f, .04f}}},
      {curve, {{.9f, .04f}, {.62f, .4f}, {.46f, .7f}, {.42f, 1}}}},
     {{line, {{.1f, .2f}, {.08f, .04f}, {.9f, .02f}, {.46f, 1}}}}},
    // 8: in one stroke; from two ovals
    {{{curve, {{.76f, .12f}, {.42f, 0}, {.18f, .2f}, {.42f, .44f}, {.76f, .64f}, {.82f, .88f}, {.5f, 1}, {.18f, .88f},
               {.28f, .62f}, {.64f, .4f}, {.84f, .2f}, {.7f, .08f}}}},
     {{curve, {{.5f, 0}, {.22f, .12f}, {.24f, .36f}, {.5f, .46f}, {.76f, .36f}, {.78f, .12f}, {.5f, 0}}},
      {curve, {{.5f, .46f}, {.16f, .62f}, {.16f, .88f}, {.5f, 1}, {.84f, .88f}, {.84f, .62f}, {.5f, .46f}}}}},
    // 9: straight stem; swung tail; stem that leans back
    {{{curve, {{.82f, .16f}, {.5f, 0}, {.14f, .2f}, {.24f, .48f}, {.6f, .46f}, {.82f, .16f}}},
      {line, {{.82f, .14f}, {.78f, 1}}}},
     {{curve, {{.8f, .14f}, {.46f, 0}, {.14f, .2f}, {.3f, .46f}, {.68f, .4f}, {.82f, .16f}, {.86f, .6f}, {.6f, .96f},
               {.2f, .94f}}}},
     {{curve, {{.78f, .2f}, {.5f, .02f}, {.18f, .22f}, {.32f, .46f}, {.64f, .4f}, {.78f, .14f}}},
      {curve, {{.78f, .14f}, {.66f, .55f}, {.5f, 1}}}}},
  }};
  return kStyles;
}
// clang-format on

}  // namespace bnns::tool
